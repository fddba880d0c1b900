# SPDX-License-Identifier: BSD-3-Clause
"""advice.py - what a controller of explicit scheduling misses in a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WFQ = "wfq"


def advice(controller: str | None, pipeline: Mapping[str, Any]) -> str:
    """One line where `wfq` decides for queues that drop what does not fit; else nothing.

    It takes the rate polled for the rate carried, and at saturation only backpressure makes the two
    one: without it polling goes on, and what was worked on is dropped.
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
    """Of each worker that has its own; what it leaves out is as in the engine."""
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
