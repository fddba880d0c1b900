# SPDX-License-Identifier: BSD-3-Clause
"""module_profile.py - service times of the papers' modules, for figures 1 and 3.

Measured once per command, or read from the profile that `--costs` names; simulated: the given
costs.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...base.problems import BadInput, Problem
from ...costs.costs import load_costs
from ...costs.law import CostLaw
from ...profile.measure import ProfileOptions, profile_kinds
from .experiment import Setup

# The papers' modules with our names; Bypass is `cost`, which takes 10,000 cycles per batch.
KINDS = {
    "exact_match": "ExactMatch",
    "split": "RandomSplit",
    "load_balancer": "HashLB",
    "ipv4_lookup": "IPLookup",
    "static_nat": "StaticNAT",
    "acl": "ACL",
    "cost": "Bypass",
    "l2_table": "",
    "ether_type": "",
    "napt": "",
    "checksum": "",
    "mac_rewrite": "",
    "ttl": "",
}

_BYPASS_NS = 4000.0  # 10,000 cycles per batch

Json = dict[str, Any]


def modules_of(setup: Setup) -> list[Json]:
    """One entry per kind, in the order of KINDS, with the times of its batch sizes."""
    if not setup.is_measured:
        return _given(setup.costs)
    document = _profile(setup.costs, setup.is_quick)
    by_kind: dict[str, Json] = {}
    for module in document["modules"]:
        if module.get("table_ns"):
            by_kind.setdefault(str(module["kind"]), module)
    found = [by_kind[kind] for kind in KINDS if kind in by_kind]
    if not found:
        message = "it holds no times of batch sizes"
        raise BadInput(Problem(message, setup.costs, "--costs", "batchplane profile --out FILE"))
    return found


def _given(costs: str) -> list[Json]:
    """For each kind its line in the costs, and the resulting times."""
    by_kind: dict[str, Json] = {"cost": _entry("cost", CostLaw(_BYPASS_NS, 0.0))}
    for entry in load_costs(costs).entries:
        by_kind.setdefault(entry.kind, _entry(entry.kind, entry.law))
    return [by_kind[kind] for kind in KINDS if kind in by_kind]


def _entry(kind: str, cost: CostLaw) -> Json:
    return {
        "kind": kind,
        "cost_per_batch_ns": cost.cost_per_batch_ns,
        "cost_per_pkt_ns": cost.cost_per_pkt_ns,
        "table_ns": [cost.at(n) for n in range(1, 33)],
        "r_squared": 1.0,
        "reason": "given as a line",
    }


@lru_cache(maxsize=1)
def _profile(costs: str, is_quick: bool) -> Json:
    path = Path(costs)
    if path.is_file():
        document: Json = json.loads(path.read_text(encoding="utf-8"))
        return document
    options = ProfileOptions.quick() if is_quick else ProfileOptions()
    return profile_kinds(tuple(known_kinds()), options)


def known_kinds() -> list[str]:
    """Those of KINDS that the profiler has a setup for."""
    from ...profile.setups import measured_in, setups

    known = {kind for pipeline in setups() for kind in measured_in(pipeline)}
    return [kind for kind in KINDS if kind in known]


def time_ns(module: Json, pkts: int) -> float:
    """The time of a batch of this size."""
    return float(module["table_ns"][pkts - 1])


def batchiness(module: Json) -> float:
    """cost_per_pkt / (cost_per_batch + cost_per_pkt)."""
    per_batch, per_pkt = float(module["cost_per_batch_ns"]), float(module["cost_per_pkt_ns"])
    return per_pkt / (per_batch + per_pkt) if per_batch + per_pkt > 0 else 1.0
