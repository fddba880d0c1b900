# SPDX-License-Identifier: BSD-3-Clause
"""test_bng.py - subscribers of a broadband gateway under iperf3, one of them flooding, both ways."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands, running
from lab import Lab
from rich.console import Console
from waiting import wait_until

from batchplane.demo import bng
from batchplane.demo.stage import Gateway
from batchplane.demo.traffic import received_bytes, sent_by_flow
from batchplane.demo.traffic import running as iperf3

RUN_S = 1
# The burst of a ceiling of 50 Mbit/s: a millisecond of it and a packet.
BURST_BITS = 8 * 10_000
SITES = {("alice", "bob"): 60e6, ("carol", "dave"): 60e6}


@pytest.fixture
def access(program: Path, can_have_labs: None) -> Iterator[Lab]:
    """Four subscribers and a server."""
    if shutil.which("iperf3") is None:
        pytest.skip("NOT RUN: iperf3 is not installed (make install-packages)")
    with contextlib.closing(bng.access_hosts()) as hosts:
        yield hosts


def _arrived(commands: Commands, lab: Lab) -> bool:
    """Each subscriber's kernel got the packets that the tree sent, and only the gateway's ARP
    besides."""
    with commands.client("bng") as client:
        sent = sent_by_flow(client, "download")
    return all(
        0 <= received_bytes(lab.hosts[name])[0] - sent[flow] - sent[flow + 1] <= sent[0] + 2000
        for name, flow in (("alice", 10), ("bob", 20), ("carol", 30), ("dave", 40))
    )


def _all_get_something(commands: Commands, lab: Lab, direction: str) -> None:
    """During the flood everybody can send, however fast or slow this machine is."""
    loads = list(bng.loads_of(lab, direction).values())
    with commands.client("bng") as client:
        before = sent_by_flow(client, direction)
        with iperf3(lab.hosts["server"], bng.SERVER, loads, 0):
            wait_until(
                lambda: all(
                    sent_by_flow(client, direction)[flow] > before[flow] + 200_000
                    for flow in (10, 20, 30, 40)
                ),
                f"everybody has some {direction}",
            )


def test_ceilings_hold_and_nobody_starves_beside_a_flood(access: Lab, folder: Path) -> None:
    commands = Commands(folder, access.router)
    told = io.StringIO()
    with running(commands, "bng", "bng"):
        gateway = Gateway(access.router, folder)
        found = bng.show_at_work(Console(file=told, width=200), access, gateway, folder, RUN_S)
        for direction, part in (("download", 1.0), ("upload", 0.5)):
            sent_bps = {each.subscriber: each.sent_bps for each in found[direction]}
            for each in found[direction]:
                assert each.sent_bps <= each.ceil_bps * 1.001 + BURST_BITS / RUN_S, each
            for names, ceil_bps in SITES.items():
                most_bps = part * ceil_bps * 1.001 + BURST_BITS / RUN_S
                assert sum(sent_bps[name] for name in names) <= most_bps, sent_bps
        for direction in ("download", "upload"):
            _all_get_something(commands, access, direction)
        wait_until(lambda: _arrived(commands, access), "what was released has arrived")
        drops = commands.json("show", "drops")
    assert any(row["reason"].startswith("egress_") for row in drops), drops
    for word in ("alice", "dave", "promised", "fq_codel", "fifo"):
        assert word in told.getvalue()
