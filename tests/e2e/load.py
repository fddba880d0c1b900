# SPDX-License-Identifier: BSD-3-Clause
"""load.py - pipelines/l2l3.yaml under generated load: whether traffic still flows."""

from __future__ import annotations

from commands import Commands, assert_balanced
from waiting import wait_until

from batchplane.daemon.client import Client
from batchplane.daemon.process import find_program
from batchplane.lang.kinds import load_kinds
from batchplane.lang.load import load_pipeline, parse_overrides

LOAD = ["rate_pps=200000", "nexthops=4"]


def in_pkts(client: Client) -> int:
    """Packets that came in so far."""
    balance = client.show("runtime")["balance"]
    assert_balanced(balance)
    return int(balance["in_pkts"])


def assert_traffic_goes_on(commands: Commands, name: str = "l2l3") -> None:
    """More packets come in, and the balance holds."""
    with commands.client(name) as client:
        before = in_pkts(client)
        wait_until(lambda: in_pkts(client) > before + 1000, "traffic goes on")


def canonical(*words: str) -> dict[str, object]:
    """A pipeline of the tree as the daemon reads it."""
    return dict(
        load_pipeline(words[0], parse_overrides(words[1:]), load_kinds(find_program())).pipeline
    )
