# SPDX-License-Identifier: BSD-3-Clause
"""test_mobile_gateway.py - a mobile user behind pipelines/mobile_gateway.yaml and a server beyond it.

The user sits behind a base station of a few lines of Python (gtpu_endpoint.py), on a TUN device.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import raw_frames as raw
from commands import Commands
from lab import Lab, wait_listening
from waiting import wait_until

ENDPOINT = str(Path(__file__).with_name("gtpu_endpoint.py"))
GATEWAY, STATION = "192.0.2.1", "192.0.2.2"
CORE, SERVER, USER = "198.51.100.1", "198.51.100.7", "10.45.0.2"
UPLINK, DOWNLINK = 100, 200
FILE_MB = 8


def session(**qer: Any) -> dict[str, Any]:
    """The user's session: a rule for each direction, one QER and one URR for both."""
    rules = {"qers": [1], "urrs": [1]}
    return {
        "seid": 1,
        "ue": USER,
        "pdrs": [
            {"id": 1, "source": "access", "teid": UPLINK, "far": 1, **rules},
            {"id": 2, "source": "core", "far": 2, **rules},
        ],
        "fars": [{"id": 1}, {"id": 2, "teid": DOWNLINK, "peer": STATION}],
        "qers": [{"id": 1, "qfi": 9, **qer}],
        "urrs": [{"id": 1}],
    }


@dataclass
class World:
    """User and server with the gateway between them."""

    lab: Lab
    commands: Commands
    folder: Path

    def user(self, *command: str, is_good: bool = True, timeout_s: float = 60) -> str:
        return self.lab.hosts["station"].run(*command, is_good=is_good, timeout_s=timeout_s)

    def server(self, *command: str, is_good: bool = True, timeout_s: float = 60) -> str:
        return self.lab.hosts["server"].run(*command, is_good=is_good, timeout_s=timeout_s)

    def ask(self, *words: str) -> bytes:
        """Another base station's answer to one message; the port is free if no user is attached."""
        told = self.user("python3", "-S", ENDPOINT, STATION, GATEWAY, *words)
        return bytes.fromhex(told)

    def attach(self, *options: str) -> None:
        """Attaches the user to the network."""
        endpoint = self.lab.hosts["station"].start(
            "python3", "-S", ENDPOINT, STATION, GATEWAY, USER, str(UPLINK), str(DOWNLINK), *options,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert endpoint.stdout is not None
        assert endpoint.stdout.readline() == "ready\n"

    def row(self) -> dict[str, Any]:
        told = json.loads(self.commands.good("show", "sessions", "seid=1", "--json"))
        row: dict[str, Any] = told[0]["sessions"][0]
        return row


@pytest.fixture
def world(program: Path, can_have_labs: None, folder: Path) -> Iterator[World]:
    if not Path("/dev/net/tun").exists():
        pytest.skip("NOT RUN: this machine has no TUN devices")
    lab = Lab()
    commands = None
    try:
        lab.add_host("station", "ran0", f"{STATION}/24", GATEWAY)
        lab.add_host("server", "core0", f"{SERVER}/24", CORE)
        commands = Commands(folder, lab.router)
        sessions = folder / "users.jsonl"
        sessions.write_text(f"# one user\n{json.dumps(session())}\n")
        commands.good("start", "mobile_gateway", f"sessions={sessions}", f"gateway={SERVER}")
        yield World(lab, commands, folder)
        commands.stop("mobile_gateway")
    finally:
        if commands is not None:
            commands.kill_all()
        lab.close()


def ping(world: World, size_bytes: int = 56, count: int = 3) -> str:
    return world.user(
        "ping", "-n", "-c", str(count), "-i", "0.02", "-W", "10", "-s", str(size_bytes), SERVER,
        is_good=False,
    )  # fmt: skip


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("options", [(), ("--qfi", "9")], ids=["plain", "qfi"])
def test_pings_of_any_size_in_both_directions(world: World, options: tuple[str, ...]) -> None:
    """Long ones are fragmented: the user's packets, and the tunnel's."""
    world.attach(*options)
    for size_bytes in (0, 56, 1372, 1373, 1472, 4000):
        assert "3 received" in ping(world, size_bytes), size_bytes
        told = world.server(
            "ping", "-n", "-c", "3", "-i", "0.02", "-W", "10", "-s", str(size_bytes), USER,
            is_good=False,
        )  # fmt: skip
        assert "3 received" in told, told
    assert "3 received" in world.user("ping", "-n", "-c", "3", "-i", "0.02", CORE, is_good=False)


def test_files_arrive_byte_for_byte(world: World) -> None:
    world.attach("--qfi", "9")
    original, copy = world.folder / "file", world.folder / "copy"
    original.write_bytes(os.urandom(1 << 20) * FILE_MB)
    world.lab.hosts["server"].start(
        "python3", "-m", "http.server", "8080", "--directory", str(world.folder)
    )
    wait_listening(world.lab.hosts["server"], 8080)
    url = f"http://{SERVER}:8080/file"
    world.user("curl", "-sS", "--max-time", "50", "-o", str(copy), url)
    assert digest(original) == digest(copy)
    row = world.row()
    # TCP adds headers, and there are only acknowledgements in the other direction.
    assert row["down_bytes"] > original.stat().st_size
    assert 0 < row["up_bytes"] < row["down_bytes"] / 4
    assert row["urrs"][0]["down_bytes"] == row["down_bytes"]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_streams_go_both_ways(world: World, direction: str) -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("NOT RUN: iperf3 is not installed (make install-packages)")
    world.attach()
    world.lab.hosts["server"].start("iperf3", "-s", "-1")
    wait_listening(world.lab.hosts["server"], 5201)
    reverse = ["-R"] if direction == "down" else []
    told = world.user("iperf3", "-c", SERVER, "-t", "1", "-J", *reverse)
    # The throughput depends on the Python base station and the machine, not on the gateway.
    assert json.loads(told)["end"]["sum_received"]["bytes"] > 0


def modify(world: World, change: dict[str, Any]) -> None:
    """Changes the user's session live."""
    path = world.folder / "files" / "change.json"  # the folder itself belongs to the daemon
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps([{"seid": 1, **change}]))
    world.commands.good("set", "decap", "modify", "--file", str(path))


def reports(world: World, kind: str) -> list[dict[str, Any]]:
    """The gateway's reports about the user's session."""
    told = json.loads(world.commands.good("show", "sessions", "--json"))[0]["reports"]
    return [report for report in told if report["kind"] == kind]


def test_an_unreachable_user_gets_all_packets_later(world: World) -> None:
    world.attach()
    assert "3 received" in ping(world)
    modify(world, {"fars": [{"id": 2, "action": "buffer"}]})
    pinging = world.lab.hosts["server"].start(
        "ping", "-n", "-c", "5", "-i", "0.2", "-W", "20", USER, stdout=subprocess.PIPE, text=True
    )
    wait_until(lambda: len(reports(world, "downlink_data")) == 1, "the gateway tells")

    def held() -> int:
        tables = {table["module"]: table for table in world.commands.json("show", "tables")}
        return int(tables["hold"]["held_pkts"])

    wait_until(lambda: held() == 5, "all five wait")
    modify(world, {"fars": [{"id": 2, "action": "forward"}]})
    told, _ = pinging.communicate(timeout=30)
    assert "5 received" in told, told
    answers = [line for line in told.splitlines() if "icmp_seq=" in line]
    numbers = [line.split("icmp_seq=")[1].split()[0] for line in answers]
    assert numbers == ["1", "2", "3", "4", "5"], told
    assert held() == 0
    assert world.row()["down_dropped_pkts"] == 0


def test_use_is_reported_at_its_threshold(world: World) -> None:
    world.attach()
    modify(world, {"urrs": [{"id": 1, "volume_bytes": 6 * 2 * 84}]})
    assert "3 received" in ping(world)
    assert reports(world, "usage") == []
    assert "3 received" in ping(world)
    wait_until(lambda: len(reports(world, "usage")) == 1, "a report")
    report = reports(world, "usage")[0]
    assert (report["urr"], report["trigger"]) == (1, "volume")
    assert report["up_bytes"] == report["down_bytes"] == 6 * 84


def test_a_rate_is_kept(world: World) -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("NOT RUN: iperf3 is not installed (make install-packages)")
    world.attach()
    modify(world, {"qers": [{"id": 1, "mbr_down_bps": 2_000_000, "burst_ns": 200_000_000}]})
    world.lab.hosts["server"].start("iperf3", "-s", "-1")
    wait_listening(world.lab.hosts["server"], 5201)
    told = world.user("iperf3", "-c", SERVER, "-t", "3", "-J", "-R")
    rate_bps = json.loads(told)["end"]["sum_received"]["bits_per_second"]
    assert 0 < rate_bps < 2.3e6, rate_bps
    assert world.row()["down_dropped_pkts"] > 0


def test_echo_requests_and_unknown_tunnels_are_answered(world: World) -> None:
    """Echo requests get a response, unknown tunnels an error indication."""
    response = world.ask("--echo", "4660")
    assert response.hex() == "3202000600000000123400000e00"
    error = world.ask("--unknown", "57005")
    assert error[1] == 26 and error[4:8] == bytes(4)
    elements = error[16:]
    assert elements[:5] == b"\x10\x00\x00\xde\xad"
    assert elements[5:] == b"\x85\x00\x04" + bytes([192, 0, 2, 1])


def test_sessions_come_and_go_live(world: World) -> None:
    world.attach()
    assert "3 received" in ping(world)
    world.commands.good("set", "decap", "delete", "seid=1")
    assert "0 received" in ping(world)
    more = world.folder / "more.jsonl"
    more.write_text(json.dumps(session()) + "\n")
    world.commands.good("set", "decap", "add", "--file", str(more))
    wait_until(lambda: "3 received" in ping(world), "the user is back")
    saved = world.folder / "saved.yaml"
    world.commands.good("save", str(saved))
    assert "10.45.0.2" in saved.read_text()
    # Live changes stay in force when the same pipeline is applied again.
    sessions = world.folder / "users.jsonl"
    world.commands.good("apply", "mobile_gateway", f"sessions={sessions}", f"gateway={SERVER}")
    assert "3 received" in ping(world)
    assert world.row()["up_pkts"] >= 6
    told = world.commands.run("set", "decap", "add", "seid=2", "ue=10.45.0.2")
    assert told.code != 0 and "pdrs" in told.err, told


SEND = """
import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for message in sys.argv[2:]:
    out.sendto(bytes.fromhex(message), (sys.argv[1], 2152))
"""


def gpdu(inner: bytes) -> str:
    return (struct.pack("!BBHI", 0x30, 255, len(inner), UPLINK) + inner).hex()


def ipv4(destination: str = SERVER, **changes: int) -> bytes:
    """A packet from the user, with 20 bytes of payload."""
    head = bytearray(struct.pack("!BBHIBBH", 0x45, 0, 40, 1, 64, 17, 0))
    head += socket.inet_aton(USER) + socket.inet_aton(destination)
    head[0] = changes.get("first", head[0])
    head[8] = changes.get("ttl", head[8])
    struct.pack_into("!H", head, 2, changes.get("total", 40))
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", head, 10, (total ^ 0xFFFF) ^ changes.get("flipped", 0))
    return bytes(head) + bytes(20)


def test_what_users_forge_is_neither_forwarded_nor_counted(world: World) -> None:
    six = ipaddress.ip_address("2001:db8:45:2:c633:6407:0:1").packed
    bad = {
        "bad_checksum": ipv4(flipped=0x5555),
        "bad_total_length": ipv4(total=900),
        "bad_header_length": ipv4(first=0x43),
        "group_destination": ipv4("224.0.0.1"),
        "gtpu_inner6": struct.pack("!IHBB", 0x60000000, 0, 59, 64) + six + six,
    }
    good = gpdu(ipv4())
    world.user("python3", "-S", "-c", SEND, GATEWAY, *map(gpdu, bad.values()), good)
    wait_until(lambda: world.row()["up_pkts"] > 0, "the good one is counted")
    row = world.row()
    assert (row["up_pkts"], row["up_bytes"]) == (1, 40)
    told = world.commands.good("show", "drops", "--json")
    for reason in bad:
        assert reason in told, (reason, told)


def test_packets_dropped_after_the_lookup_are_in_no_usage(world: World) -> None:
    ended = [ipv4(ttl=1), ipv4("10.45.0.2", ttl=1)]  # to the server, and to a user
    counted = [ipv4(), ipv4(CORE, ttl=1)]  # packets for the gateway itself need no hop limit
    world.user("python3", "-S", "-c", SEND, GATEWAY, *map(gpdu, ended + counted))
    wait_until(lambda: world.row()["up_pkts"] >= 2, "those that arrive are counted")
    row = world.row()
    assert (row["up_pkts"], row["up_bytes"]) == (2, 80)
    # From one user to another: uplink of the first and downlink of the second.
    world.user("python3", "-S", "-c", SEND, GATEWAY, gpdu(ipv4(USER)))
    wait_until(lambda: world.row()["down_pkts"] >= 1, "it comes back to the user")
    row = world.row()
    assert (row["up_pkts"], row["down_pkts"], row["down_bytes"]) == (3, 1, 40)


def dropped(world: World, reason: str) -> int:
    """Packets dropped for the reason, or handed on to the ICMP errors."""
    rows = [row for row in world.commands.json("show", "drops") if row["reason"] == reason]
    return sum(int(row["pkts"]) + int(row["handed_on_pkts"]) for row in rows)


def test_tunnels_come_from_the_radio_side_only(world: World) -> None:
    """A sender in the core network who guesses a TEID is not taken for the user."""
    for address in (GATEWAY, CORE):
        world.server("python3", "-S", "-c", SEND, address, gpdu(ipv4()))
    wait_until(lambda: dropped(world, "closed_interface") == 1, "the RAN's address is closed")
    wait_until(lambda: dropped(world, "discarded") == 1, "the core's takes no tunnels")
    assert world.row()["up_pkts"] == 0
    world.user("python3", "-S", "-c", SEND, GATEWAY, gpdu(ipv4()))
    wait_until(lambda: world.row()["up_pkts"] == 1, "from the station it is taken")


def test_users_and_hosts_of_the_core_do_not_reach_the_ran(world: World) -> None:
    world.user("python3", "-S", "-c", SEND, GATEWAY, *(gpdu(ipv4(to)) for to in (STATION, GATEWAY)))
    wait_until(lambda: dropped(world, "closed_interface") == 2, "users do not")
    assert world.row()["up_pkts"] == 0
    world.server("python3", "-S", "-c", SEND, STATION, "00")
    wait_until(lambda: dropped(world, "closed_interface") == 3, "nor does the core")


def test_nothing_passes_from_the_ran_untunnelled(world: World) -> None:
    world.user("python3", "-S", "-c", SEND, SERVER, "00")
    wait_until(lambda: dropped(world, "closed_interface") == 1, "not to the core")
    world.user("python3", "-S", "-c", SEND, USER, "00")
    wait_until(lambda: dropped(world, "discarded") == 1, "not to users")
    assert world.row()["down_pkts"] == 0


def test_users_addresses_do_not_come_from_the_core(world: World) -> None:
    ports = {port["name"]: port["mac"] for port in world.commands.json("show", "ports")}
    for source in (USER, STATION, GATEWAY, "10.45.7.7"):
        packet = raw.ipv4(source, USER, raw.UDP, raw.udp(b"forged"))
        frame = raw.ether(ports["core"], "02:00:00:00:00:07", raw.IPV4, packet)
        raw.send(world.lab.hosts["server"], [frame])
    wait_until(lambda: dropped(world, "reverse_path") == 4, "their sources are forged")
    assert world.row()["down_pkts"] == 0


def test_a_bad_file_is_refused_by_line(world: World) -> None:
    world.attach()
    bad = world.folder / "bad.jsonl"
    bad.write_text(json.dumps(session()) + '\n{"seid": 9, "ue": "10.45.0"}\n')
    told = world.commands.run("set", "decap", "add", "--file", str(bad))
    assert told.code != 0
    assert f"{bad}:2" in told.err and "expected the user's IPv4 address" in told.err, told.err
    assert "3 received" in ping(world)
    bad.write_text(f"{json.dumps(session())}\n# again\n{json.dumps(session())}\n")
    told = world.commands.run("set", "decap", "replace", "--file", str(bad))
    assert f"{bad}:3" in told.err and "given twice" in told.err, told.err
