# SPDX-License-Identifier: BSD-3-Clause
"""test_home_gateway_doors.py - frames that pipelines/home_gateway.yaml must not forward or
answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
import raw_frames as raw
from home_world import World, gateway_world

from batchplane.demo.demos import HOME, HOME6, INSIDE, INTERNET, INTERNET6, OUTSIDE

pytestmark = pytest.mark.usefixtures("program", "can_have_labs")

NOBODY = "02:00:00:00:00:99"  # the MAC address of another host on the link
BROADCAST = "ff:ff:ff:ff:ff:ff"
BAD, MARKER = b"must not get through", b"the last one"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The default gateway; successful pings show that all neighbours are known."""
    with gateway_world(tmp_path_factory.mktemp("doors"), 1500) as made:
        for address in (INTERNET, INTERNET6):
            told = made.home("ping", "-n", "-c", "1", "-W", "10", address, is_good=False)
            assert "1 received" in told, told
        yield made


def mac(world: World, side: str) -> str:
    """The gateway's MAC address on that side."""
    assert world.commands is not None
    return str({p["name"]: p["mac"] for p in world.commands.json("show", "ports")}[side])


def host_mac(world: World, host: str) -> str:
    told = json.loads(world.lab.hosts[host].run("ip", "-json", "link", "show", "dev", "eth0"))
    return str(told[0]["address"])


def dropped(world: World, reason: str) -> int:
    """Packets dropped for the reason, or handed on to the ICMP errors."""
    assert world.commands is not None
    rows = [row for row in world.commands.json("show", "drops") if row["reason"] == reason]
    return sum(int(row["pkts"]) + int(row["handed_on_pkts"]) for row in rows)


def from_home(world: World, packets: list[tuple[str, int, bytes]]) -> list[bytes]:
    """Sends frames to these MACs from the home; returns the internet's, up to one that may pass."""
    source, gateway = host_mac(world, "home"), mac(world, "lan")
    frames = [raw.ether(dst, source, kind, packet) for dst, kind, packet in packets]
    good = raw.ipv4(HOME, INTERNET, raw.UDP, raw.udp(MARKER))
    return raw.arriving(
        world.lab.hosts["home"], world.lab.hosts["internet"], frames,
        raw.ether(gateway, source, raw.IPV4, good), MARKER,
    )  # fmt: skip


def echoed_at_home(world: World, frames: list[bytes]) -> list[bytes]:
    """The gateway's answers to these frames at the home, up to its answer to a ping."""
    source, gateway = host_mac(world, "home"), mac(world, "lan")
    ping = raw.ipv4(HOME, INSIDE, raw.ICMP, raw.ping(MARKER))
    home = world.lab.hosts["home"]
    last = raw.ether(gateway, source, raw.IPV4, ping)
    return raw.arriving(home, home, frames, last, MARKER)


def test_traffic_between_other_hosts_is_not_forwarded(world: World) -> None:
    before = dropped(world, "not_our_mac")
    four = raw.ipv4(HOME, INTERNET, raw.UDP, raw.udp(BAD))
    seen = from_home(
        world,
        [(NOBODY, raw.IPV4, four)] * 20 + [(NOBODY, raw.IPV6, raw.udp6(HOME6, INTERNET6, BAD))],
    )
    assert not [frame for frame in seen if BAD in frame]
    # Traffic between two hosts of the home must not be sent to them again.
    source = host_mac(world, "home")
    inside = raw.ipv4("192.168.1.77", HOME, raw.UDP, raw.udp(BAD))
    back = echoed_at_home(world, [raw.ether(NOBODY, source, raw.IPV4, inside)] * 20)
    assert not [frame for frame in back if BAD in frame]
    assert dropped(world, "not_our_mac") >= before + 41


def test_packets_for_one_host_in_frames_for_all_stay(world: World) -> None:
    four = raw.ipv4(HOME, INTERNET, raw.UDP, raw.udp(BAD))
    seen = from_home(
        world, [(BROADCAST, raw.IPV4, four), (BROADCAST, raw.IPV6, raw.udp6(HOME6, INTERNET6, BAD))]
    )
    assert not [frame for frame in seen if BAD in frame]
    assert dropped(world, "unicast_in_group_frame") == 2


def test_frames_for_other_macs_are_not_answered(world: World) -> None:
    source = host_mac(world, "home")
    pinged = raw.ipv4(HOME, INSIDE, raw.ICMP, raw.ping(BAD))
    back = echoed_at_home(world, [raw.ether(NOBODY, source, raw.IPV4, pinged)])
    assert not [frame for frame in back if BAD in frame]

    def asked(dst: str, asker: str) -> bytes:
        return raw.ether(dst, source, raw.ARP, raw.arp_request(source, asker, INSIDE))

    def answer(asker: str) -> bytes:
        return bytes.fromhex(source.replace(":", "")) + socket.inet_aton(asker)

    home = world.lab.hosts["home"]
    back = raw.arriving(
        home, home, [asked(NOBODY, "192.168.1.77")], asked(BROADCAST, "192.168.1.78"),
        answer("192.168.1.78"),
    )  # fmt: skip
    assert not [frame for frame in back if answer("192.168.1.77") in frame]


@pytest.mark.parametrize("to_group", [True, False], ids=["group_mac", "our_mac"])
def test_groups_and_broadcasts_stay_at_home(world: World, to_group: bool) -> None:
    """mDNS and SSDP, even if a host sends them to the gateway's own MAC address."""
    gateway = mac(world, "lan")
    packets = [
        ("01:00:5e:00:00:fb", raw.IPV4, raw.ipv4(HOME, "224.0.0.251", raw.UDP, raw.udp(BAD))),
        ("01:00:5e:7f:ff:fa", raw.IPV4, raw.ipv4(HOME, "239.255.255.250", raw.UDP, raw.udp(BAD))),
        (BROADCAST, raw.IPV4, raw.ipv4(HOME, "255.255.255.255", raw.UDP, raw.udp(BAD))),
        (BROADCAST, raw.IPV4, raw.ipv4(HOME, "192.168.1.255", raw.UDP, raw.udp(BAD))),
        (BROADCAST, raw.IPV4, raw.ipv4(HOME, "203.0.113.255", raw.UDP, raw.udp(BAD))),
        ("33:33:00:00:00:fb", raw.IPV6, raw.udp6(HOME6, "ff02::fb", BAD)),
        ("33:33:00:00:00:0c", raw.IPV6, raw.udp6(HOME6, "ff0e::c", BAD)),
    ]
    if not to_group:
        packets = [(gateway, kind, packet) for _, kind, packet in packets]
    assert not [frame for frame in from_home(world, packets) if BAD in frame]


def test_forged_sources_do_not_get_out(world: World) -> None:
    before = dropped(world, "reverse_path")
    gateway = mac(world, "lan")
    seen = from_home(
        world,
        [
            (gateway, raw.IPV4, raw.ipv4("198.51.100.77", INTERNET, raw.UDP, raw.udp(BAD))),
            (gateway, raw.IPV4, raw.ipv4(OUTSIDE, INTERNET, raw.UDP, raw.udp(BAD))),
            (gateway, raw.IPV6, raw.udp6("2001:db8:99::7", INTERNET6, BAD)),
            (gateway, raw.IPV6, raw.udp6("fe80::77", INTERNET6, BAD)),
        ],
    )
    assert not [frame for frame in seen if BAD in frame]
    assert dropped(world, "reverse_path") >= before + 3


def test_inside_sources_do_not_get_in(world: World) -> None:
    """From outside: to a host of the home, and to a mapping that a host has just created."""
    source, gateway = host_mac(world, "internet"), mac(world, "wan")
    before = dropped(world, "reverse_path")
    seen = from_home(world, [])
    mapped = next(frame for frame in seen if MARKER in frame)
    port = int.from_bytes(mapped[34:36], "big")

    def back(src: str, body: bytes) -> bytes:
        packet = raw.ipv4(src, OUTSIDE, raw.UDP, raw.udp(body, 5001, port))
        return raw.ether(gateway, source, raw.IPV4, packet)

    forged = [
        back("192.168.1.77", BAD), back(OUTSIDE, BAD),
        raw.ether(gateway, source, raw.IPV6, raw.ipv6(
            "2001:db8:1::77", HOME6, raw.ICMP6, b"\x80\0\0\0" + BAD)),
    ]  # fmt: skip
    got = raw.arriving(
        world.lab.hosts["internet"], world.lab.hosts["home"], forged, back(INTERNET, MARKER), MARKER
    )
    assert not [frame for frame in got if BAD in frame]
    assert dropped(world, "reverse_path") >= before + 2


def test_source_routes_are_dropped_and_priority_tags_ignored(world: World) -> None:
    gateway = mac(world, "lan")
    loose = bytes([131, 7, 4]) + socket.inet_aton(INTERNET) + b"\0"
    strict = bytes([137, 7, 4]) + socket.inet_aton(INTERNET) + b"\0"
    seen = from_home(
        world,
        [
            (gateway, raw.IPV4, raw.ipv4(HOME, INTERNET, raw.UDP, raw.udp(BAD), loose)),
            (gateway, raw.IPV4, raw.ipv4(HOME, INTERNET, raw.UDP, raw.udp(BAD), strict)),
        ],
    )
    assert not [frame for frame in seen if BAD in frame]
    assert dropped(world, "source_route") == 2
    tagged = b"\xa0\0\x08\0" + raw.ipv4(HOME, INTERNET, raw.UDP, raw.udp(b"with a priority"))
    seen = from_home(world, [(gateway, 0x8100, tagged)])
    assert [frame for frame in seen if b"with a priority" in frame]
