# SPDX-License-Identifier: BSD-3-Clause
"""stairs.py - modules that process 8 or 16 packets side by side: 17 cost twice as much as 16."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from typing import Any

from batchplane.costs.law import law_from

from .pipelines import CASES, spec_of
from .report import Row
from .saturated import rows_of

TAKES = "2 minutes, and a half a controller"
PIPELINES = ("tree(8)", "mgw(2,4)", "gateway(16)", "vrf(2,4)", "robot_control(16)")
LANES = (16, 8)
SLOS = 8
HEAVY = 0.5  # relative to the most expensive full batch of any module


def points(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Pipelines and lanes."""
    return list(itertools.product(options.cases, LANES))


def compared(point: tuple[str, int], options: argparse.Namespace) -> list[Row]:
    """A row for each SLO."""
    case, lanes = point
    spec = with_stairs(spec_of(case, options.costs), lanes)
    given = argparse.Namespace(**{**vars(options), "slos": options.slos or SLOS})
    return rows_of(f"{case}, {lanes} lanes", spec, CASES[case][2], given)


def with_stairs(spec: Mapping[str, Any], lanes: int) -> dict[str, Any]:
    """Keeps the cost of full batches, but heavy modules cost in steps of `lanes` packets."""
    full_pkts = spec["engine"]["batch_pkts"]
    costs = dict(spec["simulation"]["costs"])
    full_ns = {name: law_from(cost).at(full_pkts) for name, cost in costs.items()}
    for name, ns in full_ns.items():
        if ns >= HEAVY * max(full_ns.values()):
            step_ns = ns / -(-full_pkts // lanes)
            costs[name] = {"table_ns": [-(-n // lanes) * step_ns for n in range(1, full_pkts + 1)]}
    return {**spec, "simulation": {**spec["simulation"], "costs": costs}}
