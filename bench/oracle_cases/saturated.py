# SPDX-License-Identifier: BSD-3-Clause
"""saturated.py - ten pipelines whose input is always full; no noise."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from fixed_triggers import FixedTriggers, Triggers

from .pipelines import CASES, slos_between, spec_of
from .report import Row
from .runs import Run, best_kept, candidates, run

TAKES = "3 minutes, and 1 a controller"
SLOS, PERIODS = 12, 60
SHARES = (1.0, 0.99, 0.98, 0.96, 0.93, 0.9)


def points(options: argparse.Namespace) -> list[str]:
    """The pipelines."""
    return list(options.cases)


def compared(case: str, options: argparse.Namespace) -> list[Row]:
    """A row for each SLO of a pipeline."""
    return rows_of(case, spec_of(case, options.costs), CASES[case][2], options)


def rows_of(
    told: str, spec: Mapping[str, Any], watched: Sequence[str], options: argparse.Namespace
) -> list[Row]:
    """A row for each SLO between the p95 of holding nothing and that of full batches."""
    fixed = FixedTriggers(spec, watched)
    fixed.explore()
    n = options.periods or PERIODS
    rows = []
    for slo_ns in slos_between(fixed, options.slos or SLOS):

        def run_of(by: str | Triggers, slo_ns: int = slo_ns) -> Run:
            return run(spec, by if isinstance(by, str) else fixed.decision(by), slo_ns, watched, n)

        triggers, best = best_kept(candidates(fixed, slo_ns, SHARES), run_of)
        runs = {name: run_of(name) for name in options.controllers}
        rows.append(Row(f"{told:18} {slo_ns / 1e3:8.1f} us", best, triggers, runs))
    return rows
