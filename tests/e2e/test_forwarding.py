# SPDX-License-Identifier: BSD-3-Clause
"""test_forwarding.py - pipelines/router.yaml between two unmodified Linux hosts: real kernel traffic."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import Commands
from frames import HOSTILE, send_and_capture
from lab import Lab, wait_listening
from waiting import wait_until

from batchplane.daemon.client import Client

A, B, OWN_A, OWN_B = "10.0.1.2", "10.0.2.2", "10.0.1.1", "10.0.2.1"


def ping(lab: Lab, host: str, *words: str) -> str:
    """Output of ping, good or not."""
    return lab.hosts[host].run("ping", "-n", *words, is_good=False)


@pytest.mark.parametrize("size_bytes", [0, 1, 56, 1472, 4000])
def test_pings_of_any_size_pass_both_ways(lab: Lab, router: Commands, size_bytes: int) -> None:
    """1472 bytes fill the MTU; longer ones come in fragments and leave as they came."""
    for host, other in (("a", B), ("b", A)):
        told = ping(
            lab,
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


def test_the_router_answers_pings_to_all_its_addresses(lab: Lab, router: Commands) -> None:
    for address in (OWN_A, OWN_B):
        told = ping(lab, "a", "-c", "3", "-i", "0.02", "-W", "2", address)
        assert "3 received" in told, told


def test_traceroute_names_the_router(lab: Lab, router: Commands) -> None:
    for host, own, other in (("a", OWN_A, B), ("b", OWN_B, A)):
        told = lab.hosts[host].run("traceroute", "-n", "-q", "1", "-w", "5", other)
        hops = re.findall(r"^ *(\d+) +(\S+)", told, re.MULTILINE)
        assert hops == [("1", own), ("2", other)], told


def test_icmp_errors_come_from_the_router(lab: Lab, router: Commands) -> None:
    """Time exceeded, no route, a neighbour that is not there, and too long to be forwarded whole."""
    told = ping(lab, "a", "-c", "1", "-t", "1", "-W", "3", B)
    assert f"From {OWN_A}" in told and "Time to live exceeded" in told, told
    router.good("set", "lookup", "add", "prefix=10.66.0.0/16", "drop=true")
    router.good("set", "lookup", "delete", "prefix=0.0.0.0/0")
    told = ping(lab, "a", "-c", "1", "-W", "3", "203.0.113.9")
    assert f"From {OWN_A}" in told and "Destination Net Unreachable" in told, told
    told = ping(lab, "a", "-c", "1", "-W", "10", "10.0.2.77")
    assert f"From {OWN_A}" in told and "Destination Host Unreachable" in told, told


def test_fragmentation_needed_names_the_mtu(lab: Lab, folder: Path) -> None:
    """The way out takes 1300 bytes at most: kernels learn that from the error, and TCP gets through."""
    commands = Commands(folder, lab.router)
    text = (Path(__file__).parents[2] / "pipelines" / "router.yaml").read_text()
    narrow = folder / "narrow.yaml"
    narrow.write_text(
        text.replace("port: wan, mtu_bytes: ${mtu_bytes}", "port: wan, mtu_bytes: 1300")
    )
    commands.good("start", str(narrow))
    try:
        told = ping(lab, "a", "-c", "1", "-W", "5", "-M", "do", "-s", "1400", B)
        assert f"From {OWN_A}" in told and "mtu = 1300" in told, told
        assert "1 received" in ping(lab, "a", "-c", "1", "-W", "5", "-M", "do", "-s", "1272", B)
    finally:
        commands.stop("router")


def test_files_arrive_byte_for_byte(lab: Lab, router: Commands, folder: Path) -> None:
    """curl through the router, from both sides at once."""
    original = folder / "file"
    original.write_bytes(bytes(range(256)) * 16384)  # 4 MB
    copies = []
    for host, other, address in (("a", "b", B), ("b", "a", A)):
        lab.hosts[other].start(
            "python3", "-S", "-m", "http.server", "8000", "--directory", str(folder)
        )
        wait_listening(lab.hosts[other], 8000)
        copy = folder / f"copy_{host}"
        url = f"http://{address}:8000/file"
        copies.append(
            (copy, lab.hosts[host].start("curl", "-sS", "--max-time", "60", "-o", str(copy), url))
        )
    for copy, process in copies:
        assert process.wait(timeout=60) == 0
        assert copy.read_bytes() == original.read_bytes()


def test_iperf3_tcp_and_udp(lab: Lab, router: Commands) -> None:
    lab.hosts["b"].start("iperf3", "-s", "-p", "5201")
    wait_listening(lab.hosts["b"], 5201)
    client = ["iperf3", "-c", B, "-p", "5201", "-J"]
    tcp = json.loads(lab.hosts["a"].run(*client, "-n", "20M"))
    # What is still in the sender's buffers at the end does not count as received.
    assert tcp["end"]["sum_received"]["bytes"] > 10 * 10**6
    udp = json.loads(lab.hosts["a"].run(*client, "-u", "-b", "20M", "-l", "1200", "-t", "1", "-R"))
    assert "sum" in udp["end"], udp
    assert udp["end"]["sum"]["packets"] > 0
    # What did not arrive was lost in a kernel's queue, or is counted here.
    balance = router.json("show", "runtime")["balance"]
    assert balance["is_exact"], balance


def test_arp_is_answered_asked_and_learned(lab: Lab, router: Commands) -> None:
    """The hosts find the router, the router finds the hosts, and says so."""
    assert "1 received" in ping(lab, "a", "-c", "1", "-W", "5", B)
    macs = {port["name"]: port["mac"] for port in router.json("show", "ports")}
    for host, own, name in (("a", OWN_A, "lan"), ("b", OWN_B, "wan")):
        entry = json.loads(lab.hosts[host].run("ip", "-json", "neighbour", "show", own))[0]
        assert entry["lladdr"] == macs[name]
    link = json.loads(lab.hosts["b"].run("ip", "-json", "link", "show", "eth0"))[0]
    table = router.json("show", "tables", "neighbour")["neighbours"]
    learned = {entry["address"]: entry.get("mac") for entry in table}
    assert learned[B] == link["address"]
    assert A in learned


def test_a_neighbour_that_moves_is_found_again(lab: Lab, folder: Path) -> None:
    """Ageing: after its time an entry is asked for again, and a new MAC address is taken."""
    commands = Commands(folder, lab.router)
    text = (Path(__file__).parents[2] / "pipelines" / "router.yaml").read_text()
    quick = folder / "quick.yaml"
    ageing = "neighbour, table: main, retry: 100ms, reachable: 300ms}"
    quick.write_text(text.replace("neighbour, table: main}", ageing))
    commands.good("start", str(quick))
    try:
        assert "1 received" in ping(lab, "a", "-c", "1", "-W", "5", B)
        # Quietly, so that only the router's own question can tell it.
        lab.hosts["b"].run("ip", "link", "set", "eth0", "arp", "off")
        lab.hosts["b"].run("ip", "link", "set", "eth0", "address", "02:00:00:00:0b:0b")
        lab.hosts["b"].run("ip", "link", "set", "eth0", "arp", "on")
        # Only what the router forwards: the moved host would tell its new address by asking.
        lab.hosts["b"].run("ip", "neighbour", "replace", OWN_B, "dev", "eth0", "lladdr",
                           router_mac(commands, "wan"))  # fmt: skip
        wait_until(
            lambda: "1 received" in ping(lab, "a", "-c", "1", "-W", "1", B),
            "the moved host is found",
        )
        lab.hosts["a"].start("ping", "-n", "-q", "-i", "0.05", B)
        with commands.client("router") as client:
            wait_until(
                lambda: known_mac(client, B) == "02:00:00:00:0b:0b", "the new address is shown"
            )
    finally:
        commands.stop("router")


def known_mac(client: Client, address: str) -> str | None:
    """The MAC address that the router has for a neighbour."""
    table = client.show("tables", module="neighbour")["neighbours"]
    return next((entry.get("mac") for entry in table if entry["address"] == address), None)


def router_mac(commands: Commands, port: str) -> str:
    """The MAC address that a port has."""
    return str({p["name"]: p["mac"] for p in commands.json("show", "ports")}[port])


def test_tags_that_the_kernel_strips_are_restored(lab: Lab, folder: Path) -> None:
    """Tagged frames cross two af_packet ports joined back to back as they were sent, QinQ too."""
    commands = Commands(folder, lab.router)
    wire = folder / "wire.yaml"
    wire.write_text(WIRE)
    commands.good("start", str(wire))
    try:
        for tags in ([0x81000007], [0x810000FF, 0x81000FFE], [0x88A80001, 0x8100002A]):
            sent, got = send_and_capture(lab, tags)
            assert got == sent, f"{tags}: sent {sent}, got {got}"
    finally:
        commands.stop("wire")


def test_hostile_frames_change_nothing(lab: Lab, router: Commands) -> None:
    """Truncated headers, wrong checksums and nonsense are dropped with reasons; pings go on."""
    assert "1 received" in ping(lab, "a", "-c", "1", "-W", "5", B)
    mac = router_mac(router, "lan")
    lab.hosts["a"].python(HOSTILE, mac)
    drops = wait_until(
        lambda: (
            {d["reason"]: d["pkts"] for d in router.json("show", "drops")}
            if sum(d["pkts"] for d in router.json("show", "drops")) >= 400
            else None
        ),
        "hostile frames are counted",
    )
    assert len(drops) >= 3, drops
    told = ping(lab, "a", "-c", "5", "-i", "0.02", "-W", "5", B)
    assert "5 received" in told, told


WIRE = """
name: wire
ports:
  left: {kind: af_packet, interface: lan0}
  right: {kind: af_packet, interface: wan0}
modules:
  in_left: {kind: port_in, port: left}
  in_right: {kind: port_in, port: right}
  out_left: {kind: port_out, port: left}
  out_right: {kind: port_out, port: right}
connect:
  - in_left -> out_right
  - in_right -> out_left
"""
