# SPDX-License-Identifier: BSD-3-Clause
"""test_router.py - what pipelines/router.yaml sends and learns itself: ICMP errors, neighbours,
tags, and hostile frames."""

from __future__ import annotations

import json
from pathlib import Path

from commands import Commands
from frames import HOSTILE, send_and_capture
from lab import Lab, ping
from waiting import wait_until

from batchplane.daemon.client import Client

A, B, OWN_A, OWN_B = "10.0.1.2", "10.0.2.2", "10.0.1.1", "10.0.2.1"


def test_icmp_errors_come_from_the_router(lab: Lab, router: Commands) -> None:
    """Time exceeded, no route, an absent neighbour, and packets too long to be forwarded whole."""
    told = ping(lab, "a", "-c", "1", "-t", "1", "-W", "3", B)
    assert f"From {OWN_A}" in told and "Time to live exceeded" in told, told
    router.good("set", "lookup", "add", "prefix=10.66.0.0/16", "drop=true")
    router.good("set", "lookup", "delete", "prefix=0.0.0.0/0")
    told = ping(lab, "a", "-c", "1", "-W", "3", "203.0.113.9")
    assert f"From {OWN_A}" in told and "Destination Net Unreachable" in told, told
    told = ping(lab, "a", "-c", "1", "-W", "10", "10.0.2.77")
    assert f"From {OWN_A}" in told and "Destination Host Unreachable" in told, told


def test_fragmentation_needed_names_the_mtu(lab: Lab, folder: Path) -> None:
    """The WAN link has an MTU of 1300 bytes: kernels learn it from the error, and TCP gets
    through."""
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


def test_arp_is_answered_asked_and_learned(lab: Lab, router: Commands) -> None:
    """The hosts find the router, the router finds the hosts, and shows them."""
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
    """Ageing: an old entry is requested again, and the new MAC address replaces the old one."""
    commands = Commands(folder, lab.router)
    text = (Path(__file__).parents[2] / "pipelines" / "router.yaml").read_text()
    quick = folder / "quick.yaml"
    ageing = "neighbour, table: main, retry: 100ms, reachable: 300ms}"
    quick.write_text(text.replace("neighbour, table: main}", ageing))
    commands.good("start", str(quick))
    try:
        assert "1 received" in ping(lab, "a", "-c", "1", "-W", "5", B)
        # Without an announcement, so that only the router's own request can find out.
        lab.hosts["b"].run("ip", "link", "set", "eth0", "arp", "off")
        lab.hosts["b"].run("ip", "link", "set", "eth0", "address", "02:00:00:00:0b:0b")
        lab.hosts["b"].run("ip", "link", "set", "eth0", "arp", "on")
        # Only forwarded traffic: the moved host would announce its new address by asking.
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
    """Tagged frames cross two af_packet ports connected back to back unchanged, QinQ too."""
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
    """Truncated headers, wrong checksums and nonsense are dropped with reasons; pings still
    work."""
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
