# SPDX-License-Identifier: BSD-3-Clause
"""test_edge_router.py - pipelines/edge_router.yaml, small, under generated load: all branches carry
packets, tables are replaced meanwhile, and all packets are accounted for.
"""

from __future__ import annotations

import json
from pathlib import Path

from commands import Commands
from load import assert_traffic_goes_on
from waiting import wait_until

SMALL = ["fib_size=500", "fib6_size=100", "acl_size=50", "flows=64", "rate_pps=20000"]
LAST_OF_EACH_BRANCH = ["out_core_3", "out_access_3", "out_server_3", "out6"]


def pkts_of(commands: Commands) -> dict[str, int]:
    with commands.client("edge_router") as client:
        return {module["name"]: module["pkts"] for module in client.show("runtime")["modules"]}


def test_all_branches_carry_packets_and_add_up(batchplane: Commands, folder: Path) -> None:
    batchplane.good("start", "edge_router", *SMALL)
    wait_until(
        lambda: all(pkts_of(batchplane)[name] > 0 for name in LAST_OF_EACH_BRANCH),
        "all branches carry packets",
    )
    (folder / "tables").mkdir()
    rules = folder / "tables" / "rules.json"
    rules.write_text(json.dumps([{"dst": "250.0.0.0/8", "action": "deny"}]))
    batchplane.good("set", "filter", "replace", "--file", str(rules))
    batchplane.good("set", "lookup_up", "add", "vrf=1", "prefix=20.0.0.0/8", "gate=2")
    batchplane.good("set", "police_up", "set", "cir_bps=1000000000")
    assert_traffic_goes_on(batchplane, "edge_router")
    balance = batchplane.stop("edge_router")["balance"]
    assert balance["sent_pkts"] > 0
    assert balance["dropped_pkts"] == 0
