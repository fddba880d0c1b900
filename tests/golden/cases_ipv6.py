# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of the IPv6 modules, by scapy and ipaddress."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Interface, IPv6Network
from typing import Any

from golden import Case, Fate, case, ether, noise, wire
from scapy.layers.inet import TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

LAN_MAC, WAN_MAC, HOST = "02:00:00:00:0a:00", "02:00:00:00:0b:00", "02:00:00:00:00:42"
LAN_LINK, WAN_LINK = "fe80::ff:fe00:a00", "fe80::ff:fe00:b00"
INTERFACES: list[dict[str, Any]] = [
    {"name": "lan", "mac": LAN_MAC, "addresses": ["2001:db8:a::1/64", f"{LAN_LINK}/64"]},
    {
        "name": "wan",
        "mac": WAN_MAC,
        "mtu_bytes": 1300,
        "addresses": ["2001:db8:b::1/60", f"{WAN_LINK}/64"],
    },
]
NEXT_HOPS: list[dict[str, Any]] = [
    {"id": 1, "interface": "lan"},
    {"id": 2, "interface": "wan", "via": "fe80::5"},
    {"id": 3, "interface": "lan", "via": "2001:db8:a::9", "mac": "02:00:00:00:00:99"},
    {"id": 4, "gate": 0},
]
COMPANION = {
    "kind": "ipv6_lookup",
    "params": {
        "table": "main",
        "interfaces": True,
        "next_hops": NEXT_HOPS,
        "max_prefixes": 64,
    },
    "connected_gates": 2,
}
UDP_NEXT, FRAGMENT, AUTHENTICATION, NONE = 17, 44, 51, 59
EXTENSIONS = (0, 43, FRAGMENT, 60, AUTHENTICATION, 135)

A, B = "2001:db8:a::50", "2001:db8:b::60"


def to(dst: str, src: str = A, **more: Any) -> bytes:
    return wire(ether() / IPv6(src=src, dst=dst, **more) / UDP(sport=5, dport=6))


def sorts() -> list[bytes]:
    """Good ones with all kinds of headers, faulty ones, short ones, and noise."""
    ip = IPv6(src=A, dst=B)
    packets: list[Packet] = [
        ip / UDP() / Raw(b"x" * 30),
        ip / TCP(),
        ip / Raw(b""),
        ip / IPv6ExtHdrHopByHop() / UDP(),
        ip / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting() / TCP(),
        ip / IPv6ExtHdrFragment(m=1) / UDP() / Raw(b"x" * 16),
        ip / IPv6ExtHdrFragment(offset=3) / Raw(b"x" * 16),
        ip / AH(padding=b"y" * 12) / UDP(),
        ip / IPv6ExtHdrDestOpt() / IPv6ExtHdrHopByHop() / UDP(),
        IPv6(src=A, dst=B, hlim=0) / UDP(),
        IPv6(src=A, dst=B, hlim=1) / UDP(),
        IPv6(src=A, dst=B, version=4) / UDP(),
        IPv6(src=A, dst=B, plen=500) / UDP(),
        IPv6(src=A, dst=B, plen=3, nh=60) / Raw(b"abc"),
        IPv6(src=A, dst=B, nh=60) / Raw(b"\x11\x09" + bytes(14)),
    ]
    chain: Packet = ip
    for _ in range(9):
        chain = chain / IPv6ExtHdrDestOpt()
    packets.append(chain / UDP())
    for src, dst in (("::", B), ("::1", B), ("ff02::1", B), ("::", "ff02::16"), ("fe80::1", B)):
        packets.append(IPv6(src=src, dst=dst) / UDP())
    for dst in ("::", "::1", "ff01::1", "ff02::1", "ff0e::1"):
        packets.append(IPv6(src=A, dst=dst) / UDP())
    frames = [wire(ether() / packet) for packet in packets]
    whole = frames[4]
    frames += [whole[:n] for n in (0, 5, 14, 40, 53, 54, 55, 60, len(whole) - 1)]
    return frames + noise(30, 6)


def upper_fault(packet: bytes) -> str | None:
    """What is wrong with the chain of extension headers."""
    at, following, n = 40, packet[6], 0
    while following in EXTENSIONS:
        if n == 8:
            return "too_many_extension_headers"
        if at + 8 > len(packet) or (following == 0 and n > 0):
            return "bad_extension_header"
        size = (packet[at + 1] + 1) * 8
        if following == AUTHENTICATION:
            size = (packet[at + 1] + 2) * 4
        is_later = following == FRAGMENT and int.from_bytes(packet[at + 2 : at + 4], "big") >> 3
        if following == FRAGMENT:
            size = 8
        following = packet[at]
        if is_later:
            return None
        at, n = at + size, n + 1
        if at > len(packet):
            return "bad_extension_header"
    return None


def martian(packet: bytes) -> str | None:
    src, dst = IPv6Address(packet[8:24]), IPv6Address(packet[24:40])
    is_link_group = dst.is_multicast and dst.packed[1] & 15 <= 2
    if src.is_multicast or src.is_loopback or (src.is_unspecified and not is_link_group):
        return "martian_source"
    if dst.is_unspecified or dst.is_loopback or (dst.is_multicast and dst.packed[1] & 15 <= 1):
        return "martian_destination"
    return None


@case("ipv6_check")
def ipv6_check() -> Case:
    def model(frame: bytes) -> Fate:
        if len(frame) < 54:
            return ("drop", "too_short")
        total = 40 + int.from_bytes(frame[18:20], "big")
        packet = frame[14 : 14 + total]
        if frame[14] >> 4 != 6:
            return ("drop", "bad_version")
        if total > len(frame) - 14:
            return ("drop", "bad_payload_length")
        if packet[7] == 0:
            return ("drop", "hop_limit_zero")
        fault = upper_fault(packet) or martian(packet)
        return ("drop", fault) if fault else ("out", 0, frame[:14] + packet)

    return Case("ipv6_check", {}, sorts(), model)


@case("hop_limit")
def hop_limit() -> Case:
    def model(frame: bytes) -> Fate:
        if len(frame) < 54:
            return ("drop", "too_short")
        if frame[21] <= 1:
            return ("drop", "hop_limit_expired")
        return ("out", 0, frame[:21] + bytes([frame[21] - 1]) + frame[22:])

    return Case("hop_limit", {}, sorts(), model)


ROUTES: list[dict[str, Any]] = [
    {"prefix": "2a00::/12", "gate": 2},
    {"prefix": "2a00:1::/32", "gate": 3, "metric": 5},
    {"prefix": "2a00:1::/32", "gate": 4, "metric": 2},
    {"prefix": "2a00:1:8000::/33", "gate": 5},
    {"prefix": "2a00:1:8000::7/128", "gate": 2},
    {"prefix": "2b00::/16", "via": "2001:db8:b::9"},
    {"prefix": "2c00::/16", "via": "fe80::9%lan", "gate": 4},
    {"prefix": "2d00::/16", "drop": True},
    {"prefix": "2e00::/16", "gate": "local"},
]
WINNERS: dict[str, int | str] = {
    "2a00::/12": 2,
    "2a00:1::/32": 4,
    "2a00:1:8000::/33": 5,
    "2a00:1:8000::7/128": 2,
    "2b00::/16": 0,
    "2c00::/16": 4,
    "2d00::/16": "route_drop",
    "2e00::/16": 1,
    "ff00::/8": 1,
    "fe80::/10": 0,
    f"{LAN_LINK}/128": 1,
    f"{WAN_LINK}/128": 1,
    "2001:db8:a::/64": 0,
    "2001:db8:a::1/128": 1,
    "2001:db8:a::/128": 1,
    "2001:db8:b::/60": 0,
    "2001:db8:b::1/128": 1,
    "2001:db8:b::/128": 1,
}
DESTINATIONS = [
    *("2a00::1", "2a0f::1", "2a10::1", "2a00:1::1", "2a00:1:7fff::1", "2a00:1:8000::1"),
    *("2a00:1:8000::7", "2a00:1:8000::8", "2a00:2::", "2b00::1", "2c00::1", "2d00::1", "2e00::1"),
    *("2f00::1", "ff02::1", "ff0e::5", "fe80::1", "febf::1", "fec0::1", LAN_LINK, WAN_LINK),
    *("2001:db8:a::1", "2001:db8:a::2", "2001:db8:a::", "2001:db8:a:1::", "2001:db8:b:f::1"),
    *("2001:db8:b:10::", "2001:db8:b::1", "2001:db8:b::", "::", "::1"),
]


@case("ipv6_lookup")
def ipv6_lookup() -> Case:
    by_length = sorted(
        ((IPv6Network(prefix), target) for prefix, target in WINNERS.items()),
        key=lambda entry: -entry[0].prefixlen,
    )

    def model(frame: bytes) -> Fate:
        if len(frame) < 54:
            return ("drop", "too_short")
        for network, target in by_length:
            if IPv6Address(frame[38:54]) in network:
                return ("drop", target) if isinstance(target, str) else ("out", target, frame)
        return ("drop", "no_route")

    frames = [to(dst) for dst in DESTINATIONS] + [to(B)[:53], b""]
    params = {"routes": ROUTES, "interfaces": True, "max_prefixes": 256}
    return Case(
        "ipv6_lookup", params, frames, model, {"connected_gates": 6, "interfaces": INTERFACES}
    )


def own_addresses() -> dict[str, int]:
    return {
        str(IPv6Interface(text).ip): i
        for i, interface in enumerate(INTERFACES)
        for text in interface["addresses"]
    }


@case("icmp6_echo")
def icmp6_echo() -> Case:
    def model(frame: bytes) -> Fate:
        packet = Ether(frame)
        if len(frame) < 62 or frame[20] != 58 or packet[IPv6].plen > len(frame) - 54:
            return ("out", 1, frame)
        if 133 <= frame[54] <= 137:
            return ("out", 2, frame)
        dst = packet[IPv6].dst
        own = own_addresses()
        is_own = dst in own and (not dst.startswith("fe80") or own[dst] == 0)
        if frame[54] != 128 or not (is_own or dst in ("ff02::1", "ff02::2")):
            return ("out", 1, frame)
        good = Ether(frame)
        del good[ICMPv6EchoRequest].cksum
        if Ether(bytes(good))[ICMPv6EchoRequest].cksum != packet[ICMPv6EchoRequest].cksum:
            return ("drop", "bad_icmp_checksum")
        request = packet[ICMPv6EchoRequest]
        src = packet[IPv6].src
        answering = dst if is_own else LAN_LINK if src.startswith("fe80") else "2001:db8:a::1"
        reply = (
            Ether(dst=packet.dst, src=packet.src)
            / IPv6(src=answering, dst=src, hlim=64)
            / ICMPv6EchoReply(id=request.id, seq=request.seq, data=request.data)
        )
        return ("out", 0, bytes(reply))

    def asks(dst: str, src: str = A, size: int = 20, **more: Any) -> bytes:
        echo = ICMPv6EchoRequest(id=7, seq=3, data=bytes(range(size)), **more)
        return bytes(ether() / IPv6(src=src, dst=dst, hlim=9) / echo)

    frames = [asks(dst) for dst in (*own_addresses(), "ff02::1", "ff02::2", "ff02::5", B)]
    frames += [asks("ff02::1", "fe80::7"), asks("2001:db8:a::1", size=201)]
    frames += [asks("2001:db8:a::1", cksum=0x1234), asks("2001:db8:a::1")[:-1]]
    frames.append(bytes(ether() / IPv6(src=A, dst="2001:db8:a::1") / ICMPv6EchoReply()))
    frames.append(bytes(ether() / IPv6(src=A, dst="ff02::1:ff00:1") / ICMPv6ND_NS(tgt=A)))
    frames += [to("2001:db8:a::1"), b"", bytes(54)]
    setting = {
        "connected_gates": 3,
        "interfaces": INTERFACES,
        "meta": {"in_interface": 0},
    }
    return Case("icmp6_echo", {}, frames, model, setting)


ERRORS: dict[str, Packet] = {
    "hop_limit_expired": ICMPv6TimeExceeded(code=0),
    "no_route": ICMPv6DestUnreach(code=0),
    "beyond_scope": ICMPv6DestUnreach(code=2),
    "neighbour_unreachable": ICMPv6DestUnreach(code=3),
    "mtu_exceeded": ICMPv6PacketTooBig(mtu=1300),
}


@case("icmp6_error")
def icmp6_error() -> Case:
    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        reason = meta["drop_reason"]
        packet = Ether(frame)
        is_too_big = reason == "mtu_exceeded"
        if reason not in ERRORS or IPv6 not in packet or meta.get("is_originated"):
            return ("drop", "icmp_not_due")
        src, dst = IPv6Address(packet[IPv6].src), IPv6Address(packet[IPv6].dst)
        is_to_many = dst.is_multicast or frame[0] & 1
        if src.is_unspecified or src.is_multicast or (is_to_many and not is_too_big):
            return ("drop", "icmp_not_due")
        if packet[IPv6].nh == 58 and (frame[54] < 128 or frame[54] == 137):
            return ("drop", "icmp_not_due")
        source = LAN_LINK if src.is_link_local else "2001:db8:a::1"
        quoted = frame[14 : 14 + 40 + packet[IPv6].plen][: 1280 - 48]
        error = IPv6(src=source, dst=str(src), hlim=64) / ERRORS[reason] / Raw(quoted)
        return ("out", 0, bytes(Ether(dst="0:0:0:0:0:0", src="0:0:0:0:0:0") / error))

    base = {"in_interface": 0, "next_hop": 2}
    frames, metas = [], []

    def add(frame: bytes, reason: str, **more: Any) -> None:
        frames.append(frame)
        metas.append({**base, "drop_reason": reason, **more})

    for reason in (*ERRORS, "icmp_rate_limited"):
        add(to(B), reason)
        add(to("ff0e::1"), reason)
        add(to(B, "fe80::9"), reason)
        add(wire(ether() / IPv6(src=A, dst=B) / ICMPv6TimeExceeded() / IPv6() / UDP()), reason)
        add(wire(ether() / IPv6(src=A, dst=B) / ICMPv6EchoRequest()), reason)
    add(to(B, "::"), "no_route")
    add(to(B), "no_route", is_originated=True)
    add(wire(ether("33:33:00:00:00:01") / IPv6(src=A, dst=B) / UDP()), "no_route")
    add(wire(ether() / IPv6(src=A, dst=B) / UDP() / Raw(bytes(1400))), "mtu_exceeded")
    setting = {"interfaces": INTERFACES, "companions": [COMPANION]}
    return Case("icmp6_error", {"table": "main"}, frames, model, setting, metas)


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
        if packet[IPv6].src.startswith("fe80") and interface != meta["in_interface"]:
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
