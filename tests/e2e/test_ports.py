# SPDX-License-Identifier: BSD-3-Clause
"""test_ports.py - interfaces that vanish while traffic flows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands
from lab import Lab, steady_pings
from waiting import is_soon, wait_until

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
    """The link of one host is deleted under traffic to it; the other two are not affected."""
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
        with steady_pings(lab, "10.0.2.2"):
            lab.router.run("ip", "link", "delete", "dmz0")
            ports = wait_until(
                lambda: {p["name"]: p for p in commands.json("show", "ports") if not p["is_up"]},
                "show ports tells that a port is down",
            )
            assert set(ports) == {"dmz"}
            assert "down" in commands.good("show", "ports")
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


SHORT_RING = """
name: short
engine: {batch_pkts: 256}
ports:
  left: {kind: af_packet, interface: lan0, rx_slots: 32}
modules:
  in: {kind: port_in, port: left}
  out: {kind: sink}
connect:
  - in -> out
"""
_MANY_FRAMES = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for i in range(100):
    s.send(bytes.fromhex("0200000000bb0200000000aa88b5") + bytes([i]) * 60)
"""


def test_a_full_ring_shorter_than_a_batch_is_read_once(lab: Lab, folder: Path) -> None:
    """More frames arrive than the ring holds while the daemon is stopped; each comes in once."""
    commands = Commands(folder, lab.router)
    pipeline = folder / "short.yaml"
    pipeline.write_text(SHORT_RING)
    commands.good("start", str(pipeline))
    try:
        for rounds in range(1, 4):
            os.kill(commands.pid("short"), signal.SIGSTOP)
            lab.hosts["a"].python(_MANY_FRAMES)
            os.kill(commands.pid("short"), signal.SIGCONT)
            stats = wait_until(
                lambda most=100 * rounds: next(
                    (
                        port["stats"]
                        for port in commands.json("show", "ports")
                        if port["stats"]["rx_pkts"] + port["stats"]["rx_missed_pkts"] >= most
                    ),
                    None,
                ),
                "every frame came in or was missed",
            )
            assert stats["rx_pkts"] == 32 * rounds, stats
            assert stats["rx_missed_pkts"] == 68 * rounds, stats
    finally:
        commands.stop("short")


BRIDGE = """
name: bridge
ports:
  left: {kind: af_packet, interface: lan0}
  right: {kind: af_packet, interface: wan0}
modules:
  in: {kind: port_in, port: left}
  out: {kind: port_out, port: right}
connect:
  - in -> out
flows:
  - {name: through, path: [in, out], delay_slo: 100ms}
"""
_LONG_AND_SHORT = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for size, type in ((60, "88b5"), (1515, "88b5"), (1518, "81000007"), (1519, "81000007"),
                   (3000, "88b5"), (1514, "88b5")):
    s.send((bytes.fromhex("0200000000bb0200000000aa" + type) + bytes(size))[:size])
"""


_FRAMES = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for size in map(int, sys.argv[1].split(",")):
    s.send((bytes.fromhex("0200000000bb0200000000aa88b5") + bytes(size))[:size])
"""


class Bridge:
    """Forwards all frames from lan0 to wan0."""

    def __init__(self, lab: Lab, commands: Commands) -> None:
        self.lab, self.commands = lab, commands
        self._counters = Path(f"/proc/{lab.hosts['b'].pid}/net/dev")

    def arrived(self) -> int:
        """Frames that host b's interface has received."""
        return int(self._counters.read_text().split("eth0:")[1].split()[1])

    def send(self, *sizes: int) -> None:
        """Host a sends frames of these sizes."""
        self.lab.hosts["a"].python(_FRAMES, ",".join(map(str, sizes)))

    def counted(self) -> tuple[int, dict[str, int]]:
        """Packets sent, and drops by reason."""
        runtime = self.commands.json("show", "runtime")
        drops = {row["reason"]: row["pkts"] for row in self.commands.json("show", "drops")}
        return runtime["balance"]["sent_pkts"], drops


@pytest.fixture
def bridge(lab: Lab, folder: Path) -> Iterator[Bridge]:
    """All links have an MTU of 9000 bytes except the last."""
    for space, device in ((lab.router, "lan0"), (lab.hosts["a"], "eth0")):
        space.run("ip", "link", "set", device, "mtu", "9000")
    commands = Commands(folder, lab.router)
    pipeline = folder / "bridge.yaml"
    pipeline.write_text(BRIDGE)
    commands.good("start", str(pipeline))
    try:
        yield Bridge(lab, commands)
    finally:
        commands.stop("bridge")


def test_frames_that_the_kernel_would_not_send_are_dropped(bridge: Bridge) -> None:
    """They are not counted as sent, and those behind them go out."""
    before = bridge.arrived()
    bridge.lab.hosts["a"].python(_LONG_AND_SHORT)
    wait_until(lambda: bridge.arrived() == before + 3, "the others arrive")
    wait_until(lambda: bridge.counted() == (3, {"mtu_exceeded": 3}), "each is counted once")


def test_an_mtu_that_changes_is_followed(bridge: Bridge) -> None:
    """Smaller: longer packets are dropped and block nothing. Larger: they pass, without any
    request."""
    lab = bridge.lab
    before = bridge.arrived()
    lab.router.run("ip", "link", "set", "wan0", "mtu", "1000")
    bridge.send(*[1200, 60] * 100)
    wait_until(lambda: bridge.arrived() >= before + 100, "short ones arrive")
    wait_until(lambda: bridge.counted() == (100, {"mtu_exceeded": 100}), "each is counted once")
    lab.router.run("ip", "link", "set", "wan0", "mtu", "1500")

    def passes() -> bool:
        now = bridge.arrived()
        bridge.send(1200)
        return is_soon(lambda: bridge.arrived() > now, 1)

    wait_until(passes, "long ones pass again")


def test_nothing_is_sent_while_a_link_is_down_nor_later(bridge: Bridge) -> None:
    lab = bridge.lab
    lab.router.run("ip", "link", "set", "wan0", "down")
    # As many as our kernel ring holds, whoever else uses the CPU.
    bridge.send(*[60] * 400)
    wait_until(lambda: bridge.counted() == (0, {"tx_full": 400}), "all are counted as dropped")
    before = bridge.arrived()
    lab.router.run("ip", "link", "set", "wan0", "up")

    def passes() -> bool:
        bridge.send(60)
        return is_soon(lambda: bridge.arrived() > before, 1)

    wait_until(passes, "new ones pass")
    sent, _ = bridge.counted()
    assert bridge.arrived() - before <= sent < 100  # none of the 400


def test_an_interface_that_is_made_again_is_used_again(bridge: Bridge) -> None:
    lab = bridge.lab
    lab.router.run("ip", "link", "delete", "wan0")
    host = lab.hosts["b"]
    lab.router.run(
        *["ip", "link", "add", "dev", "wan0", "type", "veth", "peer", "name", "eth0", "netns"],
        str(host.pid),
    )
    lab.router.run("ip", "link", "set", "wan0", "up")
    host.run("ip", "link", "set", "eth0", "up")

    def passes() -> bool:
        before = bridge.arrived()
        bridge.send(60)
        return is_soon(lambda: bridge.arrived() > before, 1)

    wait_until(passes, "frames pass again")
    ports = {port["name"]: port for port in bridge.commands.json("show", "ports")}
    assert ports["right"]["facts"]["rebinds"] == 1
    told = [event["what"] for event in ports["right"]["facts"]["events"]]
    assert {"wan0 is removed", "wan0 is made again"} <= set(told)
    assert told[-1] == "wan0 is up"
    assert "wan0 is made again" in bridge.commands.good("show", "ports")


def test_delay_starts_when_a_packet_comes(bridge: Bridge) -> None:
    """The daemon is stopped while packets come: the time in the kernel's ring counts."""
    (daemon,) = bridge.commands.json("list")
    pid = int(daemon["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        state = Path(f"/proc/{pid}/stat")
        wait_until(lambda: state.read_text().rsplit(")", 1)[1].split()[0] == "T", "it stands")
        before = bridge.arrived()
        bridge.send(*[60] * 50)
        time.sleep(0.2)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: bridge.arrived() == before + 50, "all arrive")
    flows = {flow["name"]: flow for flow in bridge.commands.json("show", "flows")}
    assert flows["through"]["late_pkts"] == 50
    assert flows["through"]["delay_max_ns"] >= 200_000_000
