# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of vrf_lookup."""

from __future__ import annotations

from typing import Any

from golden import Case, Fate, all_sorts, case
from ipv4_lookup_golden import DESTINATIONS, lookup_model
from router_world import to


@case("vrf_lookup")
def vrf_lookup() -> Case:
    tables: dict[int, dict[str, int | str]] = {
        1: {"10.0.0.0/8": 1, "10.1.0.0/16": 2, "172.16.0.0/12": "route_drop"},
        40000: {"0.0.0.0/0": 0, "10.1.1.128/25": 3},
    }
    vrfs = []
    for number, table in tables.items():
        routes = [
            {"prefix": prefix, "drop": True} if isinstance(gate, str) else
            {"prefix": prefix, "gate": gate}
            for prefix, gate in table.items()
        ]  # fmt: skip
        vrfs.append({"vrf": number, "routes": routes})
    frames = [to(dst) for dst in DESTINATIONS] * 3 + all_sorts(48)
    order = (1, 1, 1, 40000, 40000, 2, 0, 40000, 1)
    metas = [{"vrf": order[i % len(order)]} for i in range(len(frames))]
    models = {number: lookup_model(table) for number, table in tables.items()}

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        found = models.get(meta["vrf"])
        return found(frame) if found else ("drop", "unknown_vrf")

    return Case("vrf_lookup", {"vrfs": vrfs}, frames, model, {"connected_gates": 4}, metas)
