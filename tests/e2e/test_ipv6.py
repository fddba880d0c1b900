# SPDX-License-Identifier: BSD-3-Clause
"""test_ipv6.py - pipelines/router6.yaml between two unmodified Linux hosts that speak IPv6."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands
from lab import Lab, Namespace, wait_listening
from waiting import wait_until

A, B, OWN_A, OWN_B = "2001:db8:1::2", "2001:db8:2::2", "2001:db8:1::1", "2001:db8:2::1"


def turn_on(host: Namespace) -> None:
    """IPv6 with a link-local address, at once: nobody else is on the link to have it."""
    settings = "/proc/sys/net/ipv6/conf/eth0"
    host.run("sh", "-c", f"echo 0 > {settings}/accept_dad; echo 0 > {settings}/disable_ipv6")


def give_address(host: Namespace, address: str, gateway: str) -> None:
    host.run("ip", "address", "add", f"{address}/64", "dev", "eth0", "nodad")
    host.run("ip", "-6", "route", "add", "default", "via", gateway)


def ping(lab: Lab, host: str, *words: str) -> str:
    """Output of ping, good or not."""
    return lab.hosts[host].run("ping", "-6", "-n", *words, is_good=False)


@pytest.fixture
def router6(lab: Lab, folder: Path) -> Iterator[Commands]:
    """The router, and hosts with fixed addresses; host b is behind a link of 1400 bytes."""
    commands = Commands(folder, lab.router)
    commands.good("start", "router6", "wan_mtu_bytes=1400")
    for name, address, gateway in (("a", A, OWN_A), ("b", B, OWN_B)):
        turn_on(lab.hosts[name])
        give_address(lab.hosts[name], address, gateway)
    yield commands
    try:
        if commands.pids():
            commands.stop("router6")
    finally:
        commands.kill_all()


@pytest.mark.parametrize("size_bytes", [0, 1, 56, 1352])
def test_pings_of_any_size_pass_both_ways(lab: Lab, router6: Commands, size_bytes: int) -> None:
    """1352 bytes fill the smaller MTU."""
    for host, other in (("a", B), ("b", A)):
        told = ping(lab, host, "-c", "5", "-i", "0.02", "-W", "5", "-s", str(size_bytes), other)
        assert "5 received" in told, told
        assert "ttl=63" in told, "the router lowers the hop limit once"


def test_the_router_answers_for_itself(lab: Lab, router6: Commands) -> None:
    for address in (OWN_A, OWN_B, "ff02::2%eth0"):
        told = ping(lab, "a", "-c", "2", "-i", "0.1", "-W", "5", address)
        assert "2 received" in told, told
    entry = json.loads(lab.hosts["a"].run("ip", "-6", "-json", "neighbour", "show", OWN_A))[0]
    macs = {port["name"]: port["mac"] for port in router6.json("show", "ports")}
    assert entry["lladdr"] == macs["lan"]
    assert "router" in entry, "the router says that it is one"


def test_traceroute_names_the_router(lab: Lab, router6: Commands) -> None:
    for host, own, other in (("a", OWN_A, B), ("b", OWN_B, A)):
        told = lab.hosts[host].run("traceroute", "-6", "-n", "-q", "1", "-w", "5", other)
        hops = re.findall(r"^ *(\d+) +(\S+)", told, re.MULTILINE)
        assert hops == [("1", own), ("2", other)], told


def test_icmp_errors_come_from_the_router(lab: Lab, router6: Commands) -> None:
    told = ping(lab, "a", "-c", "1", "-W", "5", "-M", "do", "-s", "1400", B)
    assert f"From {OWN_A}" in told and "1400" in told, told
    told = ping(lab, "a", "-c", "2", "-W", "10", "2001:db8:2::77")
    assert f"From {OWN_A}" in told and "Address unreachable" in told, told
    router6.good("set", "lookup", "delete", "prefix=::/0")
    told = ping(lab, "a", "-c", "1", "-W", "3", "2a00::1")
    assert f"From {OWN_A}" in told and "No route" in told, told


def test_tcp_finds_the_path_mtu_and_files_arrive(lab: Lab, router6: Commands, folder: Path) -> None:
    """Packets of 1500 bytes do not fit the way to b: the kernel learns 1400 and gets through."""
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
        assert "3 received" in ping(lab, "a", "-c", "3", "-i", "0.1", "-W", "5", B)
    finally:
        commands.stop("router6")
        commands.kill_all()
