# SPDX-License-Identifier: BSD-3-Clause
"""shared.py - the same pipelines on a core of a shared machine, as measured on one.

Executions of the same batch differ by half. Slow spells, in which everything takes 1.5 times as
long, and fast ones alternate, half a second each on average; 400 times a second the machine takes
10 to 70 us away. The controller has to estimate costs from sampled executions, and begins with
those of another moment: batches cost 1.5 times what they do now, and packets 0.7 times.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from typing import Any

from . import noise
from .report import Row
from .runs import PERIOD_NS, SETTLE_PERIODS, CostChanges

TAKES = "10 minutes, and 4 a controller"
PERIODS = 500
SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)
SIGMA = 0.5
SLOW_FACTOR, SPELL_NS = 1.5, 500_000_000
HOLES_PER_S, HOLES_NS = 400, [10_000, 20_000, 30_000, 50_000, 70_000]
TOLD_BATCH, TOLD_PKT = 1.5, 0.7  # of the true costs

points = noise.points
summary = noise.summary


def compared(case: str, options: argparse.Namespace) -> list[Row]:
    """A row for each SLO of a pipeline."""
    n = options.periods or PERIODS
    changes = spells((SETTLE_PERIODS + n) * PERIOD_NS, seed=1)
    return noise.beside_fixed(case, options, n, on_shared_core, changes, SHARES, told_costs)


def on_shared_core(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the noise that the simulator generates itself: of executions, and gaps."""
    holes = {"rate_per_s": HOLES_PER_S, "lengths_ns": HOLES_NS}
    made = {"noise": {"sigma": SIGMA}, "stalls": holes}
    return {**spec, "simulation": {**spec["simulation"], **made}}


def told_costs(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The costs that the controller starts with: those of another moment."""
    costs = {}
    for name, law in spec["simulation"]["costs"].items():
        costs[name] = {
            "cost_per_batch_ns": TOLD_BATCH * law["cost_per_batch_ns"],
            "cost_per_pkt_ns": TOLD_PKT * law["cost_per_pkt_ns"],
        }
    return costs


def spells(until_ns: int, seed: int) -> CostChanges:
    """Fast and slow ones in turn."""
    rng = random.Random(seed)
    changes: list[tuple[int, float]] = []
    now_ns, factor = 0, 1.0
    while now_ns < until_ns:
        changes.append((now_ns, factor))
        now_ns += int(rng.expovariate(1 / SPELL_NS))
        factor = SLOW_FACTOR if factor == 1 else 1.0
    return changes
