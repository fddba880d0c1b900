# SPDX-License-Identifier: BSD-3-Clause
"""latency.py - `pspat_latency`: the delay of a flow within its share, by scheduler."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...base.percentile import percentile
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_most, in_range
from .watched import Watched, latencies_pkts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCIPLINES = ("fifo", "drr", "wf2q_plus", "qfq", "qfq_plus")
LOADS = (Watched(100, 4), Watched(50, 32), Watched(100, 100))
GROWTH = tuple(Watched(50, n) for n in (8, 16, 32, 64, 128))


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """The slides' load, the two of the authors' script, and a growing number of other flows."""
    yield []
    n_pkts = 4_000 if setup.is_quick else 40_000
    loads = dict.fromkeys((*LOADS, *GROWTH))
    rows = [_row(name, load, n_pkts) for load in loads for name in DISCIPLINES]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(discipline: str, load: Watched, n_pkts: int) -> Row:
    waits = latencies_pkts(discipline, load, n_pkts)
    return {
        "load": load.label,
        "others": load.others,
        "weight": load.weight,
        "discipline": discipline,
        "p50_pkts": percentile(waits, 0.5),
        "p99_pkts": percentile(waits, 0.99),
        "max_pkts": waits[-1],
    }


def _p99(rows: list[Row], discipline: str, load: Watched) -> float:
    for row in rows:
        if row["discipline"] == discipline and row["load"] == load.label:
            return float(row["p99_pkts"])
    raise KeyError(discipline)


def claims(rows: list[Row]) -> list[Verdict]:
    """PSPAT's slides: latency follows the packet time; only round robin grows with the flows."""
    fair = ("wf2q_plus", "qfq")
    few, many = GROWTH[0], GROWTH[-1]
    grown = {
        name: _p99(rows, name, many) / _p99(rows, name, few)
        for name in ("wf2q_plus", "qfq", "qfq_plus")
    }
    times = lambda value: f"{value:.1f}x"  # noqa: E731
    pkts = lambda value: f"{value:.1f} packet times"  # noqa: E731
    at_50_32 = LOADS[1]
    return [
        at_most(
            "WF2Q+ and QFQ: a flow within its share waits a few packet times (p99, 50 : 32 x 1)",
            {name: _p99(rows, name, at_50_32) for name in fair}, 3, pkts,
        ),
        in_range(
            "QFQ+: p99 of an ideal link about 9 packet times (50 : 32 x 1)",
            {"qfq_plus": _p99(rows, "qfq_plus", at_50_32)}, 5, 12, pkts, is_more_better=False,
        ),
        in_range(
            "DRR: p99 about 34 packet times (50 : 32 x 1)",
            {"drr": _p99(rows, "drr", at_50_32)}, 28, 40, pkts, is_more_better=False,
        ),
        in_range(
            "worst delay grows with the number of flows for DRR: 16 times the flows",
            {"drr": _p99(rows, "drr", many) / _p99(rows, "drr", few)}, 8, 20, times,
            is_more_better=False,
        ),
        at_most("and hardly for the others: 16 times the flows", grown, 2, times),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """p99 by number of other flows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(
        f"waiting of a flow of weight 50 at half its share ({setup.label})", fontsize=10
    )
    for i, name in enumerate(DISCIPLINES):
        mine = [row for row in rows if row["discipline"] == name and row["weight"] == 50]
        mine = sorted({row["others"]: row for row in mine}.values(), key=lambda row: row["others"])
        axis.plot(
            [row["others"] for row in mine], [row["p99_pkts"] for row in mine], "o-",
            color=COLOURS[i % len(COLOURS)], label=name, markersize=4,
        )  # fmt: skip
    axis.set_xlabel("others of weight 1, all backlogged")
    axis.set_ylabel("p99, packet times of the link")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.grid(True, color="#dddddd", linewidth=0.6)
    axis.legend(fontsize=8)
    return figure


def _digits(value: float) -> str:
    return f"{value:.1f}"


COLUMNS = (
    ("load", "weights", shown),
    ("discipline", "scheduler", shown),
    ("p50_pkts", "p50", _digits),
    ("p99_pkts", "p99", _digits),
    ("max_pkts", "worst", _digits),
)

EXPERIMENT = Experiment(
    "pspat_latency",
    "PSPAT: waiting of a flow that keeps its share, in packet times",
    plan,
    "pspat_latency",
    (),
    "on an ideal link: the machine's own rounds and hand-overs are not in it.",
)
