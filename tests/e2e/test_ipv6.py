# SPDX-License-Identifier: BSD-3-Clause
"""test_ipv6.py - pipelines/router6.yaml between two unmodified Linux hosts that speak IPv6."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands
from hosts6 import OWN_A, OWN_B, A, B, ping6, routing6
from lab import Lab


@pytest.fixture(scope="module")
def router6(shared_lab: Lab, shared_folder: Path) -> Iterator[Commands]:
    """One router for all of these tests, which only send traffic through it."""
    with routing6(shared_lab, shared_folder) as commands:
        yield commands


@pytest.mark.parametrize("size_bytes", [0, 1, 56, 1352])
def test_pings_of_any_size_pass_both_ways(
    shared_lab: Lab, router6: Commands, size_bytes: int
) -> None:
    """1352 bytes fill the smaller MTU."""
    for host, other in (("a", B), ("b", A)):
        told = ping6(
            shared_lab, host, "-c", "5", "-i", "0.02", "-W", "5", "-s", str(size_bytes), other
        )
        assert "5 received" in told, told
        assert "ttl=63" in told, "the router lowers the hop limit once"


def test_the_router_answers_for_itself(shared_lab: Lab, router6: Commands) -> None:
    for address in (OWN_A, OWN_B, "ff02::2%eth0"):
        told = ping6(shared_lab, "a", "-c", "2", "-i", "0.1", "-W", "5", address)
        assert "2 received" in told, told
    entry = json.loads(shared_lab.hosts["a"].run("ip", "-6", "-json", "neighbour", "show", OWN_A))[
        0
    ]
    macs = {port["name"]: port["mac"] for port in router6.json("show", "ports")}
    assert entry["lladdr"] == macs["lan"]
    assert "router" in entry, "the router says that it is one"


def test_traceroute_names_the_router(shared_lab: Lab, router6: Commands) -> None:
    for host, own, other in (("a", OWN_A, B), ("b", OWN_B, A)):
        told = shared_lab.hosts[host].run("traceroute", "-6", "-n", "-q", "1", "-w", "5", other)
        hops = re.findall(r"^ *(\d+) +(\S+)", told, re.MULTILINE)
        assert hops == [("1", own), ("2", other)], told
