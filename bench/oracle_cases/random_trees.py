# SPDX-License-Identifier: BSD-3-Clause
"""random_trees.py - random pipelines, saturated, at an SLO between holding nothing and full
batches.

Each module has its own trigger. The search starts from the triggers at which controllers settle and
from uniform ones, and changes single modules and pairs.
"""

from __future__ import annotations

import argparse
import random

from fixed_triggers import MEASURED_NS, SETTLE_NS, FixedTriggers, Triggers
from random_pipelines import random_pipeline

from .report import Row
from .runs import Run, best_kept, run

TAKES = "5 minutes for 30 pipelines"
PERIODS = 60
TRIES = 300
SHARES = (1.0, 0.99, 0.98, 0.97, 0.95, 0.92)  # of the SLO, as the p95 varies between periods
NEXT_BEST = 2
SETTLE_P95, MEASURED_P95 = 3, 10  # times the p95 of full batches


def points(options: argparse.Namespace) -> list[int]:
    """The seeds."""
    return list(range(options.first, options.first + options.pipelines))


def compared(seed: int, options: argparse.Namespace) -> list[Row]:
    """One row."""
    spec = random_pipeline(seed)
    slowest = FixedTriggers(spec, (), 5 * SETTLE_NS, 5 * MEASURED_NS)
    ends = slowest.alike(0).p95_ns, slowest.alike(slowest.batch_pkts).p95_ns
    share_of_slo = random.Random(seed + 1000).uniform(0, 1)
    slo_ns = int(1.005 * (min(ends) + (max(ends) - min(ends)) * share_of_slo))
    settle_ns = max(SETTLE_NS, int(SETTLE_P95 * max(ends)))
    measured_ns = max(MEASURED_NS, int(MEASURED_P95 * max(ends)))
    fixed = FixedTriggers(spec, (), settle_ns, measured_ns)
    n = options.periods or PERIODS
    runs = {name: run(spec, name, slo_ns, (), n) for name in options.controllers}
    starts = [(*(pkts,) * len(fixed.classes), 0) for pkts in range(fixed.batch_pkts + 1)]
    starts += [triggers for found in runs.values() for triggers in settled(fixed, found)]
    for share in (1.0, SHARES[-1]):
        fixed.best_of_many(share * slo_ns, starts, TRIES // 2, seed)
    kept = dict.fromkeys(
        point.triggers for s in SHARES for point in fixed.all_kept(s * slo_ns)[:NEXT_BEST]
    )
    triggers, best = best_kept(kept, lambda tried: run(spec, fixed.decision(tried), slo_ns, (), n))
    told = f"{seed:4} {len(spec['flows']):3} flows {share_of_slo:4.2f} {slo_ns / 1e3:8.1f} us"
    return [Row(told, best, triggers, runs)]


def settled(fixed: FixedTriggers, found: Run) -> list[Triggers]:
    """The triggers at which a controller settled, and slightly smaller ones."""
    triggers = tuple(found.trigger_pkts[modules[0]] for modules in fixed.classes)
    return [(*(_trigger(pkts * share) for pkts in triggers), 0) for share in (1, 0.95, 0.9, 0.8)]


def _trigger(pkts: float) -> int:
    return int(pkts) if pkts >= 2 else 0
