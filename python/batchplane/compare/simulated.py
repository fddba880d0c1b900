# SPDX-License-Identifier: BSD-3-Clause
"""simulated.py - the same comparison of controllers in virtual time, next to the measured one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_duration, short_rate, three_digits
from ..costs.cache import cache_path, kept_costs
from ..costs.costs import PRIOR
from ..lang.canonical import Document
from ..sim.cases import Case, comparison_rows, run_cases
from ..sim.prepare import duration_ns, prepare
from ..sim.result import Result
from .options import CompareOptions
from .rows import Row

KEPT = "kept"
_LENGTH_NS = 500_000_000


@dataclass(frozen=True)
class Twin:
    """One controller in virtual time."""

    controller: str
    rate_pps: float
    batch_mean_pkts: float
    p95_ns: float | None  # of the worst flow

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def simulate_rows(
    document: Document, options: CompareOptions, errors: Console
) -> tuple[list[Twin], str]:
    """Simulates each controller for some virtual time; returns the origin of the costs too."""
    costs = options.simulate
    if costs == KEPT:
        has_kept = kept_costs(document.pipeline).costs is not None
        costs = str(cache_path(document.pipeline)) if has_kept else PRIOR
    control = options.run.control
    inputs = prepare(document, costs=costs, sets=(*options.run.sets, *control.slo_words()))
    period_ns = duration_ns(control.period or "10ms", "--period")
    cases = [Case(name, 1, _LENGTH_NS, period_ns) for name in options.controllers]
    results = run_cases(inputs, cases, None, errors)
    rows = comparison_rows(results)
    twins = [
        Twin(row["controller"], row["rate_pps"], row["batch_mean_pkts"], _p95_ns(result))
        for row, result in zip(rows, results, strict=True)
    ]
    return twins, inputs.origin


def _p95_ns(result: Result) -> float | None:
    """The largest p95 of all flows with an SLO."""
    found = [
        float(ns)
        for flow in result.last["flows"]
        if flow["delay_slo_ns"] and (ns := flow["percentiles_ns"]["p95"]) is not None
    ]
    return max(found, default=None)


def render_beside(rows: Sequence[Row], twins: Sequence[Twin], origin: str) -> RenderableType:
    """Measured and simulated results, a line for each controller."""
    table = plain_table(
        "<", "rate measured", "simulated", "", "batch measured", "simulated", "p95 measured",
        "simulated",
    )  # fmt: skip
    for row, twin in zip(rows, twins, strict=True):
        table.add_row(
            row.controller,
            short_rate(row.rate_pps),
            short_rate(twin.rate_pps),
            f"{twin.rate_pps / row.rate_pps - 1:+.0%}" if row.rate_pps else "-",
            "-" if row.batch_mean_pkts is None else three_digits(row.batch_mean_pkts),
            three_digits(twin.batch_mean_pkts),
            short_duration(row.p95_ns),
            short_duration(twin.p95_ns),
        )
    return Group(Text("\nmeasured vs simulated", "bold"), table, Text(origin, "dim"))
