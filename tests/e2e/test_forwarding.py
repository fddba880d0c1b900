# SPDX-License-Identifier: BSD-3-Clause
"""test_forwarding.py - pipelines/router.yaml between two unmodified Linux hosts: real kernel traffic."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import Commands
from lab import Lab, iperf3, ping, wait_listening

A, B, OWN_A, OWN_B = "10.0.1.2", "10.0.2.2", "10.0.1.1", "10.0.2.1"


@pytest.mark.parametrize("size_bytes", [0, 1, 56, 1472, 4000])
def test_pings_of_any_size_pass_both_ways(
    shared_lab: Lab, shared_router: Commands, size_bytes: int
) -> None:
    """1472 bytes fill the MTU; longer ones arrive as fragments and leave unchanged."""
    for host, other in (("a", B), ("b", A)):
        told = ping(
            shared_lab,
            host,
            "-c",
            "5",
            "-i",
            "0.02",
            "-W",
            "2",
            "-s",
            str(size_bytes),
            other,
        )
        assert "5 received" in told, told
        assert "ttl=63" in told, "the router lowers the TTL once"


def test_the_router_answers_pings_to_all_its_addresses(
    shared_lab: Lab, shared_router: Commands
) -> None:
    for address in (OWN_A, OWN_B):
        told = ping(shared_lab, "a", "-c", "3", "-i", "0.02", "-W", "10", address)
        assert "3 received" in told, told


def test_traceroute_names_the_router(shared_lab: Lab, shared_router: Commands) -> None:
    for host, own, other in (("a", OWN_A, B), ("b", OWN_B, A)):
        told = shared_lab.hosts[host].run("traceroute", "-n", "-q", "1", "-w", "5", other)
        hops = re.findall(r"^ *(\d+) +(\S+)", told, re.MULTILINE)
        assert hops == [("1", own), ("2", other)], told


def test_files_arrive_byte_for_byte(shared_lab: Lab, shared_router: Commands, folder: Path) -> None:
    """curl through the router, from both sides at once."""
    original = folder / "file"
    original.write_bytes(bytes(range(256)) * 16384)  # 4 MB
    copies = []
    for host, other, address in (("a", "b", B), ("b", "a", A)):
        shared_lab.hosts[other].start(
            "python3", "-S", "-m", "http.server", "8000", "--directory", str(folder)
        )
        wait_listening(shared_lab.hosts[other], 8000)
        copy = folder / f"copy_{host}"
        url = f"http://{address}:8000/file"
        copies.append(
            (
                copy,
                shared_lab.hosts[host].start(
                    "curl", "-sS", "--max-time", "60", "-o", str(copy), url
                ),
            )
        )
    for copy, process in copies:
        assert process.wait(timeout=60) == 0
        assert copy.read_bytes() == original.read_bytes()


def test_iperf3_tcp_and_udp(shared_lab: Lab, shared_router: Commands) -> None:
    shared_lab.hosts["b"].start("iperf3", "-s", "-p", "5201")
    wait_listening(shared_lab.hosts["b"], 5201)
    tcp = iperf3(shared_lab.hosts["a"], B, "-n", "20M")
    # Bytes in the sender's buffers at the end do not count as received.
    assert tcp["sum_received"]["bytes"] > 10 * 10**6
    udp = iperf3(shared_lab.hosts["a"], B, "-u", "-b", "20M", "-l", "1200", "-t", "1", "-R")
    assert udp["sum"]["packets"] > 0
    # Missing packets were lost in a kernel's queue, or are counted here.
    balance = shared_router.json("show", "runtime")["balance"]
    assert balance["is_exact"], balance
