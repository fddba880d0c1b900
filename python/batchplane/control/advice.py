# SPDX-License-Identifier: BSD-3-Clause
"""advice.py - warns if a pipeline lacks what an explicit scheduling controller needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WFQ = "wfq"


def advice(controller: str | None, pipeline: Mapping[str, Any]) -> str:
    """One line if `wfq` controls queues that drop packets when full; otherwise nothing.

    `wfq` assumes that the polled rate is the carried rate. At saturation only backpressure makes
    them equal: without it polling goes on, and packets that already cost cycles are dropped.
    """
    if controller != WFQ:
        return ""
    dropping = [name for name, how in _executions(pipeline) if _drops(how)]
    if not dropping:
        return ""
    return (
        f"controller 'wfq' takes the polled rate for the carried one, but full queues drop packets "
        f"({', '.join(dropping)}: backpressure is off). For loads beyond saturation, set "
        "'execution: {mode: wfq, backpressure: on}'"
    )


def _executions(pipeline: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The settings of each worker that has its own, completed by those of the engine."""
    engine = _settings(pipeline.get("engine", {}).get("execution"))
    workers = pipeline.get("workers", [])
    found: list[tuple[str, Mapping[str, Any]]] = [
        (f"worker {worker['name']}", {**engine, **_settings(worker["execution"])})
        for worker in workers
        if worker.get("execution")
    ]
    return found if workers and len(found) == len(workers) else [("engine", engine), *found]


def _settings(how: Any) -> Mapping[str, Any]:
    return {"mode": how} if isinstance(how, str) else how or {}


def _drops(how: Mapping[str, Any]) -> bool:
    return how.get("mode") == WFQ and how.get("backpressure", "off") in ("off", False)
