# SPDX-License-Identifier: BSD-3-Clause
"""weights.py - `weights: auto`: the least weights of a scheduler with which all SLOs hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ..base.problems import BadInput, Problem
from ..base.units import short_bits
from ..daemon.checked import load_checked
from ..daemon.process import find_program
from ..lang.canonical import Document

if TYPE_CHECKING:
    from .admission import Admitted


def load_fitted(name: str, overrides: Sequence[str], errors: Console) -> Document:
    """Loads a pipeline without errors and prints the weights that it chose. Raises BadInput."""
    document = load_checked(name, overrides, errors)
    for line in fit_weights(document, find_program()):
        errors.print(line, soft_wrap=True)
    return document


def fit_weights(
    document: Document, program: Path, answer: dict[str, Any] | None = None
) -> list[str]:
    """Sets the weights of schedulers with `weights: auto`; returns a line about each.

    `answer`: see probe_grouped(); of the document as it is before. Raises BadInput if no weights
    do, or if the flows' traffic is not known.
    """
    modules = document.pipeline.get("modules", {})
    names = [name for name, module in modules.items() if _is_auto(module)]
    if not names:
        return []
    from .admission import DISCIPLINES, admitted, weights_that_do  # needs numpy

    for name in names:
        discipline = str(modules[name]["params"].get("discipline", "qfq_plus"))
        if discipline not in DISCIPLINES:
            raise _bad(document, name, f"{discipline} knows no weights", ", ".join(DISCIPLINES))
    rows, probe = admitted(document, program, answer)
    lines = []
    for name in names:
        mine = [row for row in rows if row.scheduler == name]
        _require_traffic(document, name, mine)
        if not mine:
            continue
        weights = weights_that_do(mine, probe.schedulers[name])
        if not weights:
            raise _bad(
                document, name, f"no weights keep all SLOs behind a link of "
                f"{short_bits(probe.schedulers[name]['rate_bps'])}",
                "`batchplane check` with given weights says what is missing",
            )  # fmt: skip
        _set(modules[name]["params"], weights)
        told = ", ".join(f"flow {number}: {w}" for number, w in sorted(weights.items()))
        lines.append(f"{name}: the least weights that keep all SLOs are {told}")
    return lines


def _is_auto(module: dict[str, Any]) -> bool:
    weights = module.get("params", {}).get("weights")
    return module["kind"] == "egress" and bool(weights == "auto")


def _bad(document: Document, name: str, message: str, fix: str) -> BadInput:
    key = f"modules.{name}.weights"
    return BadInput(Problem(message, document.where(key), key, fix))


def _require_traffic(document: Document, name: str, rows: list[Admitted]) -> None:
    """Raises BadInput unless the traffic of every SLO flow through the scheduler is known."""
    known = {row.flow for row in rows if row.sends_bps > 0}
    for flow in document.pipeline.get("flows", []):
        path = [str(step).partition(":")[0] for step in flow.get("path", [])]
        if flow.get("delay_slo_ns") and name in path and flow["name"] not in known:
            raise _bad(
                document, name, f"what flow '{flow['name']}' sends is not known here",
                "give a generator's flow its name, or give the weights",
            )  # fmt: skip


def _set(params: dict[str, Any], weights: dict[int, int]) -> None:
    inner_vlans = int(params.get("inner_vlans", 0))
    entries = [dict(entry) for entry in params.get("flows", [])]
    at = {_number(entry["flow"], inner_vlans): entry for entry in entries}
    for number, weight in sorted(weights.items()):
        if number not in at:
            entries.append({"flow": number})
            at[number] = entries[-1]
        at[number]["weight"] = weight
    params["flows"] = entries


def _number(flow: int | str, inner_vlans: int) -> int:
    """A flow's number as the daemon reads it: 12, or 100/7 for a pair of VLANs."""
    outer, _, inner = str(flow).partition("/")
    return int(outer) * inner_vlans + int(inner) if inner else int(outer)
