# SPDX-License-Identifier: BSD-3-Clause
"""noise.py - the same pipelines on a machine whose speed varies.

At strength 1 execution times vary by 10 %. All costs drift up and down by 6 % within a second. Six
times a second everything costs 1.2 to 2 times as much for 2 to 20 ms, and 300 times a second the
machine takes 5 to 50 us away. No triggers meet an SLO through all of that: the best ones are the
fastest among those that are hardly later than the least late ones.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fixed_triggers import FixedTriggers, Triggers

from . import report
from .pipelines import CASES, slos_between, spec_of
from .report import Row
from .runs import MAX_VIOLATED, PERIOD_NS, SETTLE_PERIODS, CostChanges, Run, candidates, run

TAKES = "4 minutes, and 1.5 a controller"
SLOS, PERIODS = 6, 120
ONE_PERIOD = 0.01
SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)  # of the SLO, so that triggers leave room for noise
SIGMA = 0.1
DRIFT, DRIFT_NS, DRIFT_STEP_NS = 0.06, 1_000_000_000, 20_000_000
SLOW_PER_S, SLOW_NS, SLOW_FACTORS = 6, (2_000_000, 20_000_000), (1.2, 2.0)
HOLES_PER_S, HOLES_NS = 300, [5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000]


def points(options: argparse.Namespace) -> list[str]:
    """The pipelines."""
    return list(options.cases)


def compared(case: str, options: argparse.Namespace) -> list[Row]:
    """A row for each SLO of a pipeline."""
    n = options.periods or PERIODS
    changes = cost_changes(options.strength, (SETTLE_PERIODS + n) * PERIOD_NS, seed=1)

    def disturbed(quiet: Mapping[str, Any]) -> dict[str, Any]:
        return with_noise(quiet, options.strength)

    return beside_fixed(case, options, n, disturbed, changes, SHARES)


def beside_fixed(
    case: str,
    options: argparse.Namespace,
    n: int,
    disturbed: Callable[[Mapping[str, Any]], dict[str, Any]],
    changes: CostChanges,
    shares: Sequence[float],
    told_costs: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None,
) -> list[Row]:
    """A row for each SLO of a pipeline on a disturbed machine, over n periods. The search for fixed
    triggers has a quiet one."""
    quiet, watched = spec_of(case, options.costs), CASES[case][2]
    fixed = FixedTriggers(quiet, watched)
    fixed.explore()
    spec = disturbed(quiet)
    told = told_costs(quiet) if told_costs else None
    rows = []
    for slo_ns in slos_between(fixed, options.slos or SLOS):

        def run_of(by: str | Triggers, slo_ns: int = slo_ns) -> Run:
            given = by if isinstance(by, str) else fixed.decision(by)
            return run(spec, given, slo_ns, watched, n, changes, told)

        found = {each: run_of(each) for each in candidates(fixed, slo_ns, shares, next_best=0)}
        runs = {name: run_of(name) for name in options.controllers}
        least = min((seen.violated for seen in found.values()), default=0)
        triggers, best = fastest(found, max(MAX_VIOLATED, least + ONE_PERIOD))
        rows.append(Row(f"{case:18} {slo_ns / 1e3:8.1f} us", best, triggers, runs, rivals=found))
    return rows


def fastest(runs: Mapping[Triggers, Run], max_violated: float) -> tuple[Triggers, Run | None]:
    """The fastest of those that are late no more often than this."""
    kept = {triggers: run for triggers, run in runs.items() if run.violated <= max_violated}
    return max(kept.items(), key=lambda found: found[1].rate_pps, default=((), None))


def summary(name: str, rows: Sequence[Row]) -> str:
    """One controller, also compared with fixed triggers that are late as often as it is."""
    ratios = []
    for row in rows:
        mine = row.runs[name]
        _, rival = fastest(row.rivals, max(MAX_VIOLATED, mine.violated))
        if rival:
            ratios.append(mine.rate_pps / rival.rate_pps)
    if not ratios:
        return report.summary(name, rows)
    return (
        f"{report.summary(name, rows)}; mean {statistics.mean(ratios):.3f}, least "
        f"{min(ratios):.3f} of the fastest fixed triggers late no more often than it, in "
        f"{len(ratios)} points"
    )


def with_noise(spec: Mapping[str, Any], strength: float) -> dict[str, Any]:
    """Adds the noise that the simulator generates itself: of executions, and gaps."""
    holes = {"rate_per_s": HOLES_PER_S * strength, "lengths_ns": HOLES_NS}
    noise = {"noise": {"sigma": SIGMA * strength}, "stalls": holes}
    return {**spec, "simulation": {**spec["simulation"], **noise}}


def cost_changes(strength: float, until_ns: int, seed: int) -> CostChanges:
    """The drift, and the slow periods."""
    slow = _slow_moments(SLOW_PER_S * strength, until_ns, random.Random(seed))
    times = {
        *range(0, until_ns, DRIFT_STEP_NS),
        *(t for begin, end, _ in slow for t in (begin, end)),
    }
    changes = []
    for now_ns in sorted(times):
        factor = 1 + DRIFT * strength * math.sin(2 * math.pi * now_ns / DRIFT_NS)
        for begin_ns, end_ns, times_as_slow in slow:
            if begin_ns <= now_ns < end_ns:
                factor *= times_as_slow
        changes.append((now_ns, factor))
    return changes


def _slow_moments(
    per_s: float, until_ns: int, rng: random.Random
) -> Sequence[tuple[int, int, float]]:
    """Begin, end and factor of each slow period."""
    moments, now_ns = [], 0
    while (now_ns := now_ns + int(rng.expovariate(per_s / 1e9))) < until_ns:
        moments.append((now_ns, now_ns + rng.randint(*SLOW_NS), rng.uniform(*SLOW_FACTORS)))
    return moments
