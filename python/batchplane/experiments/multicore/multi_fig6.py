# SPDX-License-Identifier: BSD-3-Clause
"""multi_fig6.py - VRF(2,4) on one core and on three: rate and delay (figure 6)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times
from .vrf_cores import DEAR, FREE, RUNS, SLO_NS, TIGHT_SLO_NS, finish, make_case, row_of, two_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RINGS_PKTS = (64, 256, 1024, 4096)


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Each controller with both costs of a hop; `optimal` also with other ring sizes."""
    cells = [(run, hop, 64, SLO_NS) for hop in (FREE, DEAR) for run in RUNS]
    cells += [(run, FREE, 64, TIGHT_SLO_NS) for run in RUNS]
    cells += [("optimal", FREE, ring, SLO_NS) for ring in RINGS_PKTS[1:]]
    cases = {cell: make_case(setup, *cell) for cell in cells}
    results = yield list(cases.values())
    rows = [row_of(results, case, cell[0], cell[1]) for cell, case in cases.items()]
    series = {run: results[cases[run, FREE, 64, TIGHT_SLO_NS].key]["series"] for run in RUNS}
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(series), series)


def claims(rows: list[Row]) -> list[Verdict]:
    """The paper's claims about figure 6, and the requirement for `optimal`."""

    def value(run: str, key: str, hop: str = FREE, ring: int = 64, slo_ns: int = SLO_NS) -> float:
        return next(
            float(row[key])
            for row in rows
            if (row["run"], row["hop"], row["ring_pkts"], row["slo_ns"]) == (run, hop, ring, slo_ns)
        )

    def tight(run: str, key: str) -> float:
        return value(run, key, slo_ns=TIGHT_SLO_NS)

    def gain(run: str, key: str, hop: str = FREE) -> dict[str, float]:
        return {run: value(run, key, hop) / value("single core", key, hop)}

    rings = {
        f"{ring} slots": value("optimal", "rate_pps", FREE, ring) / value("optimal", "rate_pps")
        for ring in RINGS_PKTS
    }
    late = {f"{ring} slots": value("optimal", "violated_ratio", FREE, ring) for ring in RINGS_PKTS}
    return [
        at_least("three cores carry 2.5 times the rate", gain("multicore", "rate_pps"), 2.5, times),
        at_most(
            "at 0.75 of the first flow's delay", gain("multicore", "delay_ns"), 0.75, times
        ),
        at_least(
            "more than with budgets that stay as they are (1.0)",
            {
                "multicore": value("multicore", "rate_pps") / value("naive", "rate_pps"),
                "multicore, tight": tight("multicore", "rate_pps") / tight("naive", "rate_pps"),
            },
            1.0, times,
        ),
        at_most(
            "the delay ends below the SLO",
            {
                "multicore": value("multicore", "violated_ratio"),
                "multicore, tight": tight("multicore", "violated_ratio"),
            },
            0.0, percent,
        ),
        at_least(
            "ours: where the SLO binds optimal carries more than the paper's (1.0)",
            {"optimal": tight("optimal", "rate_pps") / tight("multicore", "rate_pps")}, 1.0, times,
        ),
        at_most(
            "ours: and breaks it in no period", {"optimal": tight("optimal", "violated_ratio")},
            0.0, percent,
        ),
        at_least("ours: optimal carries 2.4 times", gain("optimal", "rate_pps"), 2.4, times),
        at_most("ours: at 0.75 of the delay", gain("optimal", "delay_ns"), 0.75, times),
        at_least(
            "ours: also where a hop costs both cores (2.4)",
            gain("optimal", "rate_pps", DEAR), 2.4, times,
        ),
        at_least("ours: as much with any ring (0.98)", rings, 0.98, times),
        at_most("ours: and no ring breaks the SLO", late, 0.0, percent),
    ]  # fmt: skip


def draw(series: dict[str, dict[str, list[Any]]]) -> Figure:
    """Figure 6."""
    figure, top, low = two_panels(
        "VRF(2,4) on one core and on three, SLO 28 us",
        "rate [Mpps]",
        "p95 delay of the first flow [us]",
    )
    for c, (run, columns) in enumerate(series.items()):
        periods = range(1, len(columns["out_pps"]) + 1)
        colour = COLOURS[c % len(COLOURS)]
        top.plot(periods, [r / 1e6 for r in columns["out_pps"]], color=colour, label=run)
        low.plot(periods, [d / 1e3 for d in columns["delay_ns"]], color=colour)
    return finish(figure, top, low)


COLUMNS = (
    ("run", "<run", shown),
    ("hop", "<hop", shown),
    ("slo_ns", "SLO", short_duration),
    ("ring_pkts", "ring", lambda value: f"{value}"),
    ("rate_pps", "rate", short_rate),
    ("delay_ns", "p95 of flow 0", short_duration),
    ("trigger_pkts", "trigger", lambda value: f"{value:.1f}"),
    ("violated_ratio", "violated", lambda value: f"{value:.1%}"),
)

EXPERIMENT = Experiment(
    "multi_fig6", "VRF(2,4) on one core and on three (multicore paper, figure 6)", plan,
    "multi_fig6", tuple(RUNS),
    "Costs of the papers' scripts; a packet to another core costs 1 ns, or 19 ns to one core and "
    "20 ns to the other; periods of 10 ms (quick: 2 ms) instead of 0.5 s.",
)  # fmt: skip
