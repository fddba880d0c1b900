# SPDX-License-Identifier: BSD-3-Clause
"""fig9b.py - the load changes: 100 k, 3.5 M, 200 k, 3 M, 10 k, 50 k pps, SLO 1 ms (figure 9b)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..common.case import Case
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup
from ..common.verdict import Verdict, at_least, at_most, percent, times, times_exactly
from .four_by_eight import COLUMNS, draw_series, make_case, step_rows, time_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "max", "full", "full+age", "optimal")
LOADS = ("100k", "3500k", "200k", "3M", "10k", "50k")
SLO_NS = 1_000_000


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """20 periods of each load; long ones, as the slowest flow has only 312 packets per second."""
    each = 10 if setup.is_quick else 20
    quick_ns = 100_000_000 if setup.is_measured else 50_000_000
    period_ns = quick_ns if setup.is_quick else 1_000_000_000
    step_ns = each * period_ns
    words = [f"load.rate={load}" for load in LOADS]
    # As the papers' source, which makes no packet while the ring is full and stamps those it makes:
    # a delay has no time before the ring in it.
    results = yield [
        make_case(
            setup, controller, time_line(words, step_ns), each * len(LOADS),
            period_ns=period_ns, sets=(words[0], f"flow_*.slo={SLO_NS}ns"), overflow="drop",
        )
        for controller in CONTROLLERS
    ]  # fmt: skip
    series = {name: results[name]["series"] for name in CONTROLLERS}
    rows = step_rows(
        series, [f"{load}pps" for load in LOADS], step_ns, period_ns, [SLO_NS] * len(LOADS)
    )
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(series, setup), series)


def claims(rows: list[Row]) -> list[Verdict]:
    """The paper's claims about figure 9b, and one that only age limits can fulfil."""

    def values(controller: str, key: str) -> dict[str, float]:
        return {row["step"]: row[key] for row in rows if row["controller"] == controller}

    def worst(controller: str) -> dict[str, float]:
        delays = values(controller, "worst_delay_ns")
        return {step: delay / SLO_NS for step, delay in delays.items()}

    return [
        at_most(
            "full keeps 1 ms except in transients", values("full", "violated_ratio"), 0.0, percent
        ),
        at_least(
            "max passes the SLO 100 times at low rates (10 kpps; 90 allowed)",
            {s: v for s, v in worst("max").items() if s == "10kpps"}, 90.0, times,
        ),
        at_most(
            "ours: optimal violates no period, transients included",
            values("optimal", "violated_in_all_ratio"), 0.0, percent,
        ),
        at_most(
            "ours: optimal lets no single packet pass the SLO", worst("optimal"), 1.0, times_exactly
        ),
        at_most(
            "ours: full+age lets no single packet pass the SLO",
            worst("full+age"), 1.0, times_exactly,
        ),
    ]  # fmt: skip


def draw(series: dict[str, dict[str, list[Any]]], setup: Setup) -> Figure:
    """Figure 9b."""
    return draw_series(
        series,
        f"gateway 4 x 8, the load changes, SLO 1 ms ({setup.origin})",
        "paper: full below 1 ms except in transients; max at 100 x the SLO at low rates",
        True,
    )


EXPERIMENT = Experiment(
    "fig9b", "the load changes, 10 kpps to 3.5 Mpps (figure 9b)", plan, "fig9b", CONTROLLERS,
    "Loads as in the papers' scripts; periods of 1 s (quick: 50 ms, 10 a step) instead of 3 s.",
    BOTH,
)  # fmt: skip
