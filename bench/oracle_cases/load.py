# SPDX-License-Identifier: BSD-3-Clause
"""load.py - a share of the rate of full batches, by Poisson arrivals of packets or of bursts.

SLOs are just above the least p95 that fixed triggers reach at the load. The table shows for each
controller its busy time per packet, relative to the least busy fixed triggers that meet the SLO,
and whether it is late where fixed triggers meet an SLO that is 5 % shorter.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from typing import Any

from fixed_triggers import FixedTriggers, Point, Triggers

from .pipelines import CASES, offer, spec_of
from .report import Row, shown_triggers
from .runs import MAX_VIOLATED, Run, best_kept, candidates, run

TAKES = "3 minutes, and 1 a controller"
PIPELINES = ("gateway(16)", "vrf(2,4)", "tree(8)", "robot_control(16)")
LOADS = (0.3, 0.6, 0.85, 0.97)
SLOS = (1.06, 1.15, 1.3)
PERIODS = 60
BURST_PKTS = {"poisson": 1, "bursts": 16}
SETTLE_NS, MEASURED_NS = 2_000_000, 15_000_000
SHARES = (1.0, 0.97, 0.94)  # of the SLO, as the p95 varies between periods
ROOM = 1.05


def points(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Pipelines and arrivals."""
    return [(case, kind) for case in options.cases for kind in BURST_PKTS]


def compared(point: tuple[str, str], options: argparse.Namespace) -> list[Row]:
    """A row for each load and SLO of a pipeline."""
    case, kind = point
    spec, watched = spec_of(case, options.costs), CASES[case][2]
    saturated = FixedTriggers(spec, watched)
    saturated.explore()
    most_pps = saturated.all_kept(math.inf)[0].rate_pps
    rows = []
    for load in LOADS:
        params = {"arrivals": "poisson", "burst_pkts": BURST_PKTS[kind]}
        offer(spec, {**params, "saturate": False, "rate_pps": load * most_pps})
        rows += rows_of(f"{case:17} {kind:7} {load:4.2f}", spec, watched, options)
    return rows


def pkts_per_busy_s(point: Point) -> float:
    """The goal of the fixed triggers in this table."""
    return point.rate_pps / max(point.busy, 1e-9)


def rows_of(
    told: str, spec: dict[str, Any], watched: Sequence[str], options: argparse.Namespace
) -> list[Row]:
    """A row for each SLO at one load."""
    fixed = FixedTriggers(spec, watched, SETTLE_NS, MEASURED_NS)
    fixed.explore()
    n = options.periods or PERIODS
    quickest = fixed.best(math.inf, lambda point: -point.p95_ns)
    assert quickest is not None
    rows = []
    for times in SLOS[: options.slos]:
        slo_ns = int(times * quickest.p95_ns)

        def run_of(by: str | Triggers, slo_ns: int = slo_ns) -> Run:
            return run(spec, by if isinstance(by, str) else fixed.decision(by), slo_ns, watched, n)

        tried = [
            *candidates(fixed, slo_ns, SHARES, pkts_per_busy_s, next_best=0),
            quickest.triggers,
        ]
        triggers, best = best_kept(tried, run_of)
        runs = {name: run_of(name) for name in options.controllers}
        spare = run_of(quickest.triggers, int(slo_ns / ROOM))
        has_room = spare.violated <= MAX_VIOLATED
        rows.append(Row(f"{told} {slo_ns / 1e3:8.1f} us", best, triggers, runs, has_room))
    return rows


def busy_ratio(row: Row, name: str) -> float:
    """The controller's busy time per packet relative to that of the fixed triggers."""
    return row.runs[name].busy_ns_per_pkt / row.best.busy_ns_per_pkt if row.best else math.nan


def is_missed(row: Row, name: str) -> bool:
    """Whether it is late although fixed triggers meet the SLO with room to spare."""
    return row.has_room and row.runs[name].violated > MAX_VIOLATED


def line(row: Row) -> str:
    """The row as printed."""
    best = row.best
    columns = [row.told]
    if best:
        columns.append(
            f"busy {best.busy:.3f}, late {best.violated:5.1%} {shown_triggers(row.triggers):9}"
        )
    columns += [
        f"{name} busy {busy_ratio(row, name):.3f}, late {run.violated:5.1%}"
        f"{' MISSED' if is_missed(row, name) else ''}"
        for name, run in row.runs.items()
    ]
    return " | ".join(columns)


def summary(name: str, rows: Sequence[Row]) -> str:
    """One controller; busy times only where both it and the fixed triggers meet the SLO."""
    room = [row for row in rows if row.has_room]
    kept = [
        row
        for row in rows
        if row.best and max(row.best.violated, row.runs[name].violated) <= MAX_VIOLATED
    ]
    ratios = sorted(busy_ratio(row, name) for row in kept) or [math.nan]
    carried = min(row.ratio(name) for row in rows)
    return (
        f"{name}: late in {sum(is_missed(row, name) for row in room)} of {len(room)} points that "
        f"fixed triggers keep with 5 % to spare ({len(rows)} in all); busy time mean "
        f"{statistics.mean(ratios):.3f}, 90th percentile {ratios[len(ratios) * 9 // 10]:.3f}, most "
        f"{ratios[-1]:.3f} of the least busy fixed triggers in {len(kept)} points that both keep; "
        f"carried at least {carried:.3f} of what these carry"
    )
