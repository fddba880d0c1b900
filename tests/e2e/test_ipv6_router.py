# SPDX-License-Identifier: BSD-3-Clause
"""test_ipv6_router.py - the messages of pipelines/router6.yaml to its hosts: errors, MTU,
advertisements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands
from hosts6 import OWN_A, OWN_B, A, B, give_address, ping6, routing6, turn_on
from lab import Lab, wait_listening
from waiting import wait_until


@pytest.fixture
def router6(lab: Lab, folder: Path) -> Iterator[Commands]:
    """The router, and hosts with fixed addresses."""
    with routing6(lab, folder) as commands:
        yield commands


def test_icmp_errors_come_from_the_router(lab: Lab, router6: Commands) -> None:
    told = ping6(lab, "a", "-c", "1", "-W", "5", "-M", "do", "-s", "1400", B)
    assert f"From {OWN_A}" in told and "1400" in told, told
    told = ping6(lab, "a", "-c", "2", "-W", "10", "2001:db8:2::77")
    assert f"From {OWN_A}" in told and "Address unreachable" in told, told
    router6.good("set", "lookup", "delete", "prefix=::/0")
    told = ping6(lab, "a", "-c", "1", "-W", "3", "2a00::1")
    assert f"From {OWN_A}" in told and "No route" in told, told


def test_tcp_finds_the_path_mtu_and_files_arrive(lab: Lab, router6: Commands, folder: Path) -> None:
    """Packets of 1500 bytes do not fit the link to b: the kernel learns 1400 and gets through."""
    original = folder / "file"
    original.write_bytes(bytes(range(256)) * 8192)  # 2 MB
    for host, other, address in (("b", "a", A), ("a", "b", B)):
        lab.hosts[other].start(
            "python3", "-S", "-m", "http.server", "8000", "--bind", "::", "--directory", str(folder)
        )
        wait_listening(lab.hosts[other], 8000)
        copy = folder / f"copy_{host}"
        url = f"http://[{address}]:8000/file"
        lab.hosts[host].run("curl", "-sS", "-g", "--max-time", "60", "-o", str(copy), url)
        assert copy.read_bytes() == original.read_bytes()


def test_hosts_configure_themselves(lab: Lab, folder: Path) -> None:
    """From the router advertisement alone: address, default route, MTU."""
    commands = Commands(folder, lab.router)
    commands.good("start", "router6")
    host = lab.hosts["a"]
    try:
        turn_on(host)

        def addresses() -> list[str]:
            link = json.loads(host.run("ip", "-6", "-json", "address", "show", "dev", "eth0"))
            return [entry["local"] for entry in link[0]["addr_info"] if entry["scope"] == "global"]

        wait_until(lambda: bool(addresses()), "the host has an address", 20)
        assert addresses()[0].startswith("2001:db8:1:")
        assert "default via fe80::" in host.run("ip", "-6", "route", "show")
        turn_on(lab.hosts["b"])
        give_address(lab.hosts["b"], B, OWN_B)
        assert "3 received" in ping6(lab, "a", "-c", "3", "-i", "0.1", "-W", "5", B)
    finally:
        commands.stop("router6")
        commands.kill_all()
