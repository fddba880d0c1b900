# SPDX-License-Identifier: BSD-3-Clause
"""pipelines.py - the pipelines of the tables, as simulator inputs, with costs of bench/costs."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

from fixed_triggers import FixedTriggers

from batchplane.experiments.common.case import NO_LIMIT, Case, inputs_of

COSTS = Path(__file__).resolve().parent.parent / "costs"
# Name -> pipeline, parameters, and the flows whose delay counts (empty: all).
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "gateway(16)": ("gateway", {"nexthops": 16}, ()),
    "gateway(64)": ("gateway", {"nexthops": 64}, ()),
    "gateway(4,8)": ("gateway", {"branches": 4, "nexthops": 8}, ()),
    "l2l3(16)": ("l2l3", {"nexthops": 16}, ()),
    "l2l3(64)": ("l2l3", {"nexthops": 64}, ()),
    "vrf(2,4)": ("vrf", {"vrfs": 2, "nexthops": 4}, ()),
    "vrf(4,8)": ("vrf", {"vrfs": 4, "nexthops": 8}, ()),
    "robot_control(16)": ("robot_control", {"n": 16}, ("robot",)),
    "tree(8)": ("tree", {"leaves": 8}, ()),
    "mgw(2,4)": ("mgw", {"bearers": 2, "users": 4}, ()),
}


def spec_of(case: str, costs: str | None = None) -> dict[str, Any]:
    """The simulator's input: saturated, with buffers without their own age limits. `costs`: other
    ones than the pipeline's own."""
    pipeline, params, _ = CASES[case]
    costs = costs or str(COSTS / f"{re.sub(r'[(,]', '_', case).strip(')')}.json")
    given = {**params, "age_limit": NO_LIMIT}
    made = inputs_of(Case(case, pipeline, "null", given, costs=costs, sets=("idle=hold",)))
    spec = copy.deepcopy(dict(made.spec))
    spec["engine"]["idle"] = "hold"
    # A generator with a loop of its own would leave the input empty now and then.
    for name in ("generator_look_ns", "generator_per_burst_ns", "generator_per_pkt_ns"):
        spec["simulation"]["loop"][name] = 0
    offer(spec, {"saturate": True})
    return spec


def offer(spec: dict[str, Any], params: dict[str, Any]) -> None:
    """Sets parameters of the generator."""
    for generator in spec["generators"]:
        generator["params"] = {**generator["params"], **params}


def slos_between(fixed: FixedTriggers, n: int) -> list[int]:
    """SLOs between the p95 of holding nothing and that of full batches."""
    low, high = sorted((fixed.alike(0).p95_ns, fixed.alike(fixed.batch_pkts).p95_ns))
    return [int(1.005 * (low + (high - low) * i / max(n - 1, 1))) for i in range(n)]
