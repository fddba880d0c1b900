# SPDX-License-Identifier: BSD-3-Clause
"""test_ports.py - devices that vanish while traffic flows."""

from __future__ import annotations

from pathlib import Path

from commands import Commands
from lab import Lab
from waiting import wait_until

THREE = """
name: three
ports:
  lan: {kind: af_packet, interface: lan0}
  wan: {kind: af_packet, interface: wan0}
  dmz: {kind: af_packet, interface: dmz0}
interfaces:
  - {name: lan, port: lan, addresses: [10.0.1.1/24]}
  - {name: wan, port: wan, addresses: [10.0.2.1/24]}
  - {name: dmz, port: dmz, addresses: [10.0.3.1/24]}
modules:
  in_lan: {kind: port_in, port: lan, interface: lan}
  in_wan: {kind: port_in, port: wan, interface: wan}
  in_dmz: {kind: port_in, port: dmz, interface: dmz}
  type: {kind: ether_type, rules: [{ether_type: ipv4, gate: 0}, {ether_type: arp, gate: 1}]}
  check: {kind: ipv4_check}
  lookup: {kind: ipv4_lookup, table: main, interfaces: true}
  ttl: {kind: ttl}
  neighbour: {kind: neighbour, table: main}
  out_lan: {kind: port_out, port: lan}
  out_wan: {kind: port_out, port: wan}
  out_dmz: {kind: port_out, port: dmz}
  local: {kind: drop}
connect:
  - in_lan -> type
  - in_wan -> type
  - in_dmz -> type
  - type:0 -> check -> lookup
  - type:1 -> neighbour
  - lookup:forward -> ttl -> neighbour
  - lookup:local -> local
  - neighbour:0 -> out_lan
  - neighbour:1 -> out_wan
  - neighbour:2 -> out_dmz
"""


def test_a_port_that_vanishes_is_shown_and_others_go_on(lab: Lab, folder: Path) -> None:
    """The link of one host is deleted under traffic to it; the other two do not notice."""
    lab.add_host("c", "dmz0", "10.0.3.2/24", "10.0.3.1")
    commands = Commands(folder, lab.router)
    pipeline = folder / "three.yaml"
    pipeline.write_text(THREE)
    commands.good("start", str(pipeline))
    try:
        for other in ("10.0.2.2", "10.0.3.2"):
            told = lab.hosts["a"].run(
                "ping", "-n", "-c", "2", "-i", "0.05", "-W", "5", other, is_good=False
            )
            assert "2 received" in told, told
        lab.hosts["a"].start("ping", "-n", "-q", "-i", "0.002", "10.0.3.2")
        steady = lab.hosts["a"].start(
            "ping", "-n", "-q", "-i", "0.01", "-c", "300", "10.0.2.2", stdout=-1, text=True
        )
        lab.router.run("ip", "link", "delete", "dmz0")
        ports = wait_until(
            lambda: {p["name"]: p for p in commands.json("show", "ports") if not p["is_up"]},
            "show ports tells that a port is down",
        )
        assert set(ports) == {"dmz"}
        assert "down" in commands.good("show", "ports")
        told, _ = steady.communicate(timeout=60)
        assert "300 received" in told, told
    finally:
        report = commands.stop("three")
    assert report["balance"]["held_pkts"] == 0


def test_a_link_that_comes_back_is_used_again(lab: Lab, router: Commands) -> None:
    ping = ["ping", "-n", "-c", "1", "-W", "1", "10.0.2.2"]
    assert "1 received" in lab.hosts["a"].run(*ping[:5], "5", ping[-1], is_good=False)
    lab.router.run("ip", "link", "set", "wan0", "down")
    wait_until(
        lambda: not {p["name"]: p["is_up"] for p in router.json("show", "ports")}["wan"],
        "the port is shown as down",
    )
    assert "0 received" in lab.hosts["a"].run(*ping, is_good=False)
    lab.router.run("ip", "link", "set", "wan0", "up")
    wait_until(
        lambda: "1 received" in lab.hosts["a"].run(*ping, is_good=False), "traffic passes again", 30
    )
