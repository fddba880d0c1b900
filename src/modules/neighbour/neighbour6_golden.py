# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of neighbour discovery."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

from golden import Case, Fate, case, ether, wire
from router_world6 import (
    COMPANION,
    HOST,
    INTERFACES,
    LAN_LINK,
    LAN_MAC,
    NEXT_HOPS,
    WAN_LINK,
    WAN_MAC,
    A,
    B,
    own_addresses,
    to,
)
from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw


def solicitation(wanted: str, src: str = A, dst: str = "", **more: Any) -> bytes:
    group = "ff02::1:ff" + IPv6Address(wanted).exploded[-7:]
    message = ICMPv6ND_NS(tgt=wanted, **more)
    if src != "::":
        message = message / ICMPv6NDOptSrcLLAddr(lladdr=HOST)
    return bytes(ether(src=HOST) / IPv6(src=src, dst=dst or group, hlim=255) / message)


def neighbour_traffic() -> list[tuple[bytes, dict[str, Any]]]:
    lan = {"in_interface": 0}
    return [
        (to("2001:db8:a::7"), {**lan, "next_hop": 1}),
        (to("2001:db8:a::8"), {**lan, "next_hop": 1}),
        (to("2001:db8:a::8"), {**lan, "next_hop": 1}),
        (to("2a00::1"), {**lan, "next_hop": 2}),
        (to("2a00::1"), {**lan, "next_hop": 3}),
        (to("2a00::1"), {**lan, "next_hop": 4}),
        (to("2a00::1"), {**lan, "next_hop": 63}),
        (to("ff0e::1"), {**lan, "next_hop": 1}),
        (to("2a00::1", "fe80::7"), {**lan, "next_hop": 2}),
        (wire(ether() / IPv6(src=A, dst=B) / Raw(bytes(1261))), {**lan, "next_hop": 2}),
        (wire(ether() / IPv6(src=A, dst=B) / Raw(bytes(1260))), {**lan, "next_hop": 2}),
        (solicitation("2001:db8:a::1"), {**lan, "next_hop": 1}),
        (to(A, B), {**lan, "next_hop": 1}),  # who asked is known now
        (solicitation(LAN_LINK, "fe80::9"), {**lan, "next_hop": 1}),
        (solicitation("2001:db8:a::1", "::"), {**lan, "next_hop": 1}),
        (solicitation("2001:db8:a::2"), {**lan, "next_hop": 1}),
        (solicitation("2001:db8:a::1", dst="2001:db8:a::1"), {**lan, "next_hop": 1}),
        (to(B)[:53], {**lan, "next_hop": 1}),
    ]


@case("neighbour6")
def neighbour6() -> Case:
    """One batch: the table starts with a static entry, and learns from those that ask."""
    known = {(0, "2001:db8:a::7"): "02:00:00:00:00:07"}
    asked: set[tuple[int, str]] = set()
    own = own_addresses()

    def answer(packet: Packet) -> Fate:
        target, src = packet[ICMPv6ND_NS].tgt, packet[IPv6].src
        is_probe = src == "::"
        if own.get(target) != 0:
            return ("drop", "nd_done")
        if not is_probe:
            known[(0, src)] = HOST
        message = ICMPv6ND_NA(tgt=target, R=1, S=0 if is_probe else 1, O=1)
        ip = IPv6(src=target, dst="ff02::1" if is_probe else src, hlim=255)
        mac = "33:33:00:00:00:01" if is_probe else HOST
        option = ICMPv6NDOptDstLLAddr(lladdr=LAN_MAC)
        return ("out", 0, bytes(Ether(dst=mac, src=LAN_MAC) / ip / message / option))

    def ask(interface: int, wanted: str) -> Fate:
        own_mac = (LAN_MAC, WAN_MAC)[interface]
        source = ("2001:db8:a::1", WAN_LINK)[interface]
        group = "ff02::1:ff" + IPv6Address(wanted).exploded[-7:]
        low = IPv6Address(group).packed[12:]
        mac = "33:33:" + ":".join(f"{byte:02x}" for byte in low)
        message = ICMPv6ND_NS(tgt=wanted) / ICMPv6NDOptSrcLLAddr(lladdr=own_mac)
        ip = IPv6(src=source, dst=group, hlim=255)
        return ("emit", interface, bytes(Ether(dst=mac, src=own_mac) / ip / message))

    def model(frame: bytes, meta: dict[str, Any]) -> Fate | list[Fate]:
        if len(frame) < 54:
            return ("drop", "too_short")
        packet = Ether(frame)
        if ICMPv6ND_NS in packet:
            return ("drop", "nd_malformed") if packet[IPv6].hlim != 255 else answer(packet)
        hop = next((hop for hop in NEXT_HOPS if hop["id"] == meta["next_hop"]), {})
        if "interface" not in hop:
            return ("drop", "no_interface")
        interface = 0 if hop["interface"] == "lan" else 1
        if packet[IPv6].plen + 40 > INTERFACES[interface].get("mtu_bytes", 1500):
            return ("drop", "mtu_exceeded")
        is_of_link = "fe80" in (packet[IPv6].src[:4], packet[IPv6].dst[:4])
        if is_of_link and packet[IPv6].src not in (LAN_LINK, WAN_LINK):
            return ("drop", "beyond_scope")
        neighbour = (interface, hop.get("via", packet[IPv6].dst))
        mac = hop.get("mac") or known.get(neighbour)
        if mac:
            packet.dst, packet.src = mac, (LAN_MAC, WAN_MAC)[interface]
            return ("out", interface, bytes(packet))
        if IPv6Address(neighbour[1]).is_multicast:
            return ("drop", "neighbour_unreachable")
        if neighbour in asked:
            return ("keep",)
        asked.add(neighbour)
        return [ask(*neighbour), ("keep",)]

    traffic = neighbour_traffic()
    params = {
        "table": "main",
        "announce": False,
        "neighbours": [
            {"interface": "lan", "address": "2001:db8:a::7", "mac": "02:00:00:00:00:07"}
        ],
    }
    setting = {
        "connected_gates": 2,
        "interfaces": INTERFACES,
        "companions": [COMPANION],
        "housekeep_first": True,
    }
    frames, metas = [frame for frame, _ in traffic], [meta for _, meta in traffic]
    return Case("neighbour6", params, frames, model, setting, metas)
