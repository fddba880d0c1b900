# SPDX-License-Identifier: BSD-3-Clause
"""multi_fig5.py - VRF(2,4) on three cores: an ACL's trigger and its flow's budget
(figure 5)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least
from .vrf_cores import FREE, MASTER_PERIODS, TIGHT_SLO_NS, finish, make_case, two_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = ("naive", "multicore", "diminishing")


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """The master's three ways to divide a budget."""
    cases = {run: make_case(setup, run, FREE, slo_ns=TIGHT_SLO_NS) for run in RUNS}
    results = yield list(cases.values())
    series = {run: results[cases[run].key]["series"] for run in RUNS}
    rows = [row for run in RUNS for row in rows_of(run, series[run])]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(series), series)


def rows_of(run: str, series: dict[str, list[Any]]) -> list[Row]:
    """Rows for the start, and after each of the master's steps."""
    rows = []
    for number in range(0, len(series["time_ns"]), MASTER_PERIODS):
        last = min(number + MASTER_PERIODS, len(series["time_ns"])) - 1
        rows.append(
            {
                "run": run,
                "periods": f"{number + 1}-{last + 1}",
                "first_budget_ns": series["budget_ns"][last][0],
                "second_budget_ns": series["budget_ns"][last][1],
                "second_delay_ns": series["leg_ns"][last][1],
                "trigger_pkts": float(series["trigger_pkts"][last]),
            }
        )
    return rows


def claims(rows: list[Row]) -> list[Verdict]:
    """The paper's claims about figure 5."""

    def grown(key: str, run: str = "multicore") -> dict[str, float]:
        mine = [row for row in rows if row["run"] == run]
        return {run: mine[-1][key] - mine[0][key]}

    return [
        at_least(
            "the master gives the splitter's surplus to the second core (its budget grows)",
            grown("second_budget_ns"), 1.0, short_duration,
        ),
        at_least(
            "and the ACL's trigger follows (1 packet)", grown("trigger_pkts"), 1.0,
            lambda value: f"{value:.0f} packets",
        ),
    ]  # fmt: skip


def draw(series: dict[str, dict[str, list[Any]]]) -> Figure:
    """Figure 5."""
    figure, top, low = two_panels(
        "VRF(2,4), first flow on the second core",
        "trigger of the ACL [packets]",
        "budget (line) and p95 delay (dashes)\non the second core [us]",
    )
    for c, (run, columns) in enumerate(series.items()):
        periods = range(1, len(columns["time_ns"]) + 1)
        colour = COLOURS[c % len(COLOURS)]
        top.step(periods, columns["trigger_pkts"], where="post", color=colour, label=run)
        budgets = [legs[1] / 1e3 for legs in columns["budget_ns"]]
        low.step(periods, budgets, where="post", color=colour)
        delays = [legs[1] / 1e3 for legs in columns["leg_ns"]]
        low.plot(periods, delays, color=colour, linewidth=0.8, linestyle="--")
    return finish(figure, top, low)


COLUMNS = (
    ("run", "<run", shown),
    ("periods", "<periods", shown),
    ("first_budget_ns", "budget, core 0", short_duration),
    ("second_budget_ns", "budget, core 1", short_duration),
    ("second_delay_ns", "p95, core 1", short_duration),
    ("trigger_pkts", "trigger", lambda value: f"{value:.0f}"),
)

EXPERIMENT = Experiment(
    "multi_fig5", "VRF(2,4) on three cores: a budget and a trigger (multicore paper, figure 5)",
    plan, "multi_fig5", RUNS,
    "Costs of the papers' scripts, at which 72 us never bind: an SLO of 28 us; periods of 10 ms "
    "(quick: 2 ms) instead of 0.5 s.",
)  # fmt: skip
