# SPDX-License-Identifier: BSD-3-Clause
"""algorithms.py - `pspat_algorithms`: the slides' table of decision costs and worst delays."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...base.percentile import percentile
from ...egress.replay import costs_ns
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import MEASURED, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_most, in_range
from .watched import Watched, latencies_pkts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCIPLINES = ("drr", "wf2q_plus", "qfq", "qfq_plus")
FLOWS = (32, 1_000, 10_000, 100_000)
LOADS = {
    "saturated, 64 B": (True, False),
    "saturated, mixed": (True, True),
    "coming and going, 64 B": (False, False),
    "coming and going, mixed": (False, True),
}
_PAPER_NS = {"drr": 20, "qfq": 50, "qfq_plus": 50}
_FEW, _MANY = Watched(50, 8), Watched(50, 128)


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """All schedulers take turns in every trial, so that a slow moment of the machine affects
    all."""
    yield []
    trials = 5 if setup.is_quick else 30
    rows = [row for flows in FLOWS for load in LOADS for row in _rows(flows, load, trials)]
    delays = {
        name: percentile(latencies_pkts(name, _MANY, 2000), 0.99)
        / percentile(latencies_pkts(name, _FEW, 2000), 0.99)
        for name in DISCIPLINES
    }
    return Outcome(rows, COLUMNS, claims(rows, delays), lambda: draw(rows, setup))


def _rows(flows: int, load: str, trials: int) -> list[Row]:
    is_saturated, is_mixed = LOADS[load]
    found: dict[str, list[float]] = {name: [] for name in DISCIPLINES}
    for _ in range(trials):
        for name in DISCIPLINES:
            found[name] += costs_ns(name, flows, is_saturated, is_mixed, 4)
    return [
        {
            "flows": flows,
            "load": load,
            "discipline": name,
            "p10_ns": percentile(sorted(times), 0.1),
            "p50_ns": percentile(sorted(times), 0.5),
        }
        for name, times in found.items()
    ]


def claims(rows: list[Row], delay_growth: dict[str, float]) -> list[Verdict]:
    """The slides' costs, which state no number of flows, so we compare all of ours with them."""
    ns = lambda value: f"{value:.0f} ns"  # noqa: E731
    times = lambda value: f"{value:.1f}x"  # noqa: E731
    found = []
    for name, paper_ns in _PAPER_NS.items():
        costs = {
            f"{row['flows']} flows, {row['load']}": float(row["p10_ns"])
            for row in rows
            if row["discipline"] == name
        }
        found.append(at_most(f"a decision of {name} costs {paper_ns} ns", costs, paper_ns, ns))
    cost = {(r["flows"], r["load"], r["discipline"]): float(r["p10_ns"]) for r in rows}
    saved = {
        f"{flows} flows, {load}": 1 - cost[flows, load, "qfq_plus"] / cost[flows, load, "qfq"]
        for flows in FLOWS
        for load in LOADS
    }
    found.append(
        in_range("QFQ+ costs 16 to 31 % less than QFQ", saved, 0.16, 0.31, lambda v: f"{v:.0%}")
    )
    constant = {name: delay_growth[name] for name in ("wf2q_plus", "qfq", "qfq_plus")}
    drr = {"drr": delay_growth["drr"]}
    found.append(at_most("worst delay O(1) but for DRR: 16 times the flows", constant, 2, times))
    claim = "worst delay of DRR O(N): 16 times the flows"
    found.append(in_range(claim, drr, 8, 20, times, is_more_better=False))
    return found


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Cost by number of flows, one panel per load."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.4), layout="constrained")
    figure.suptitle(f"a packet put in and taken out ({setup.origin})", fontsize=10)
    axes = figure.subplots(2, 2, sharex=True, sharey=True).flat
    for axis, load in zip(axes, LOADS, strict=True):
        for i, name in enumerate(DISCIPLINES):
            mine = [r for r in rows if r["load"] == load and r["discipline"] == name]
            axis.plot(
                [r["flows"] for r in mine], [r["p10_ns"] for r in mine], "o-", markersize=4,
                color=COLOURS[i % len(COLOURS)], label=name,
            )  # fmt: skip
        axis.set_title(load, fontsize=9)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.grid(True, color="#dddddd", linewidth=0.6)
        axis.set_xlabel("flows")
        axis.set_ylabel("ns")
    figure.axes[0].legend(fontsize=8)
    return figure


def _ns(value: float) -> str:
    return f"{value:.1f}"


COLUMNS = (
    ("flows", "flows", shown),
    ("load", "load", shown),
    ("discipline", "scheduler", shown),
    ("p10_ns", "ns, p10", _ns),
    ("p50_ns", "median", _ns),
)

EXPERIMENT = Experiment(
    "pspat_algorithms",
    "PSPAT: cost of a decision and worst delay, by scheduler",
    plan,
    "pspat_algorithms",
    (),
    "the delays beside the costs are those of an ideal link.",
    runs=(MEASURED,),
)
