# SPDX-License-Identifier: BSD-3-Clause
"""branches.py - finds branches that a pipeline could merge with another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_BRANCHES = 4


@dataclass(frozen=True)
class Branch:
    """A gate of a splitter, and the number of its gates with traffic."""

    splitter: str
    gate: int
    first: str  # the module behind the gate
    siblings: int  # gates with traffic, this one included

    def as_json(self) -> dict[str, Any]:
        return {
            "splitter": self.splitter,
            "gate": self.gate,
            "first": self.first,
            "branches": self.siblings,
        }


def branches_of(spec: Mapping[str, Any], plan: Mapping[str, Any]) -> list[Branch]:
    """The branch with the least traffic of each of the busiest splitters."""
    share = {row["module"]: row["share"] for row in plan["modules"]}
    is_controlled = {row["module"]: row["is_controlled"] for row in plan["modules"]}
    gates: dict[str, dict[int, str]] = defaultdict(dict)
    for edge in spec["edges"]:
        if edge["from"] in share and str(edge["gate"]).isdigit() and share.get(edge["to"], 0) > 0:
            gates[edge["from"]][int(edge["gate"])] = edge["to"]
    found = []
    for splitter, targets in gates.items():
        # If all branches meet at once, or end at once, merging two gains no larger batches.
        pays = any(is_controlled[to] for to in targets.values())
        if len(set(targets.values())) < 2 or not pays or share[splitter] <= 0:
            continue
        gate = min(targets, key=lambda gate: (share[targets[gate]], -gate))
        found.append(Branch(splitter, gate, targets[gate], len(targets)))
    found.sort(key=lambda branch: -share[branch.splitter])
    kept: dict[tuple[int, float], Branch] = {}
    for branch in found:
        # Similar splitters gain the same: one of them is enough.
        kept.setdefault((branch.siblings, round(share[branch.splitter], 2)), branch)
    return list(kept.values())[:MAX_BRANCHES]
