# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of access lists."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from golden import Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Timestamp
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
)
from scapy.packet import Raw

FLAG_BITS = {"fin": 1, "syn": 2, "rst": 4, "psh": 8, "ack": 16, "urg": 32}
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58}
WITH_PORTS = {6: 14, 17: 4, 33: 4, 132: 4, 136: 4}
RULES: list[dict[str, Any]] = [
    {"src": "10.0.0.0/16", "dst_ports": 53, "proto": "udp", "action": "gate 1"},
    {"tcp_flags": "syn,!ack", "dst_ports": "400-500", "action": "mark 5"},
    {"src": "10.0.0.0/8", "dst": "192.168.1.0/30", "action": "deny"},
    {"proto": "icmp", "action": "gate 2", "priority": 3},
    {"src": "2001:db8::/32", "dst_ports": "1-1023", "action": "gate 3"},
    {"dst": "2001:db8::8000/113", "proto": "icmpv6", "action": "gate 1"},
    {"src": "fd00::/8", "action": "permit"},
    {"src": "10.1.1.1", "src_ports": "0-60", "action": "gate 3"},
    {"src": "10.1.1.1", "proto": "udp", "action": "permit"},
]


class Broken(Exception):
    """Says why a frame has no question to ask."""


def transport(data: bytes, at: int, proto: int, fields: dict[str, Any]) -> dict[str, Any]:
    if proto in WITH_PORTS:
        if len(data) < at + WITH_PORTS[proto]:
            raise Broken("too_short")
        fields["ports"] = [int.from_bytes(data[at + i : at + i + 2], "big") for i in (0, 2)]
        if proto == 6:
            fields["flags"] = data[at + 13]
    return fields


def ask4(ip: bytes, reads_ports: bool) -> dict[str, Any]:
    if len(ip) < 20:
        raise Broken("too_short")
    if ip[0] >> 4 != 4:
        raise Broken("acl_bad_header")
    total = int.from_bytes(ip[2:4], "big")
    header = (ip[0] & 15) * 4
    if total > len(ip):
        raise Broken("too_short")
    if header < 20 or header > total:
        raise Broken("acl_bad_header")
    ends = [ipaddress.ip_address(ip[12:16]), ipaddress.ip_address(ip[16:20])]
    fields: dict[str, Any] = {"ends": ends, "proto": ip[9]}
    offset = int.from_bytes(ip[6:8], "big") & 0x1FFF
    if not reads_ports:
        return fields
    if offset == 1 and ip[9] == 6:
        raise Broken("acl_tiny_fragment")
    return fields if offset else transport(ip[:total], header, ip[9], fields)


def ask6(ip: bytes, reads_ports: bool) -> dict[str, Any]:
    if len(ip) < 40:
        raise Broken("too_short")
    if ip[0] >> 4 != 6:
        raise Broken("acl_bad_header")
    total = 40 + int.from_bytes(ip[4:6], "big")
    if total > len(ip):
        raise Broken("too_short")
    ends = [ipaddress.ip_address(ip[8:24]), ipaddress.ip_address(ip[24:40])]
    proto, at = ip[6], 40
    for _ in range(8):
        if proto not in (0, 43, 44, 60):
            fields: dict[str, Any] = {"ends": ends, "proto": proto}
            return transport(ip[:total], at, proto, fields) if reads_ports else fields
        if at + 8 > total:
            raise Broken("too_short")
        size = 8 if proto == 44 else (ip[at + 1] + 1) * 8
        if proto == 44 and int.from_bytes(ip[at + 2 : at + 4], "big") >> 3:
            return {"ends": ends, "proto": ip[at]}
        proto, at = ip[at], at + size
        if at > total:
            raise Broken("too_short")
    raise Broken("acl_bad_header")


def in_ports(text: Any, port: int) -> bool:
    first, _, last = str(text).partition("-")
    return int(first) <= port <= int(last or first)


def is_hit(rule: dict[str, Any], asked: dict[str, Any]) -> bool:
    for key, end in zip(("src", "dst"), asked["ends"], strict=True):
        if key in rule:
            network = ipaddress.ip_network(rule[key])
            if network.version != end.version or end not in network:
                return False
    if "proto" in rule and PROTOCOLS[rule["proto"]] != asked["proto"]:
        return False
    for i, key in enumerate(("src_ports", "dst_ports")):
        if key in rule and ("ports" not in asked or not in_ports(rule[key], asked["ports"][i])):
            return False
    if "tcp_flags" in rule:
        if "flags" not in asked:
            return False
        for name in rule["tcp_flags"].split(","):
            wanted = not name.startswith("!")
            if bool(asked["flags"] & FLAG_BITS[name.lstrip("!")]) != wanted:
                return False
    return True


def model_of(rules: list[dict[str, Any]], default: str, other: str) -> Callable[[bytes], Fate]:
    ordered = sorted(rules, key=lambda rule: -rule.get("priority", 0))

    def needs_ports(version: int) -> bool:
        for rule in rules:
            prefixes = [rule[key] for key in ("src", "dst") if key in rule]
            if all(ipaddress.ip_network(p).version == version for p in prefixes) and (
                rule.keys() & {"src_ports", "dst_ports", "tcp_flags"}
            ):
                return True
        return False

    def model(frame: bytes) -> Fate:
        kind = frame[12:14]
        try:
            if len(frame) <= 14:
                raise Broken("too_short")
            if kind == b"\x08\x00":
                asked = ask4(frame[14:], needs_ports(4))
            elif kind == b"\x86\xdd":
                asked = ask6(frame[14:], needs_ports(6))
            else:
                return ("out", 0, frame) if other == "permit" else ("drop", "acl_denied")
        except Broken as broken:
            return ("drop", str(broken))
        action = next((rule["action"] for rule in ordered if is_hit(rule, asked)), default)
        if action == "deny":
            return ("drop", "acl_denied")
        return ("out", int(action[5:]) if action.startswith("gate") else 0, frame)

    return model


def ipv6_frames() -> list[bytes]:
    ip = IPv6(src="2001:db8::1", dst="2001:db8::9000")
    udp, tcp = UDP(sport=1, dport=53), TCP(sport=2000, dport=443, flags="S")
    options = [IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt()]
    later = IPv6ExtHdrFragment(offset=7, m=1, nh=17)
    return [
        wire(ether() / ip / udp),
        wire(ether() / ip / tcp),
        wire(ether() / ip / options[0] / options[1] / udp),
        wire(ether() / ip / options[0] / ICMPv6EchoRequest()),
        wire(ether() / ip / ICMPv6EchoRequest()),
        wire(ether() / ip / IPv6ExtHdrFragment(offset=0, m=1) / udp),
        wire(ether() / ip / later / Raw(b"tail of a datagram")),
        wire(ether() / IPv6(src="fd00::1", dst="fd00::2", plen=400) / udp),
        wire(ether() / IPv6(src="2001:db9::1", dst="2001:db8::8001") / UDP(dport=2000)),
    ]


def ipv4_frames() -> list[bytes]:
    ends: dict[str, Any] = {"src": "10.1.1.1", "dst": "10.2.2.2"}
    options = [IPOption_Timestamp(flg=0, timestamp=7)]
    return [
        wire(ether() / IP(**ends, options=options) / TCP(sport=50, dport=450, flags="S")),
        wire(ether() / IP(**ends) / TCP(sport=50, dport=450, flags="SA")),
        wire(ether() / IP(**ends) / TCP(sport=70, dport=401, flags="S")),
        wire(ether() / IP(**ends, frag=1, proto=6) / Raw(b"flags of another")),
        wire(ether() / IP(**ends, frag=1, proto=17) / Raw(b"no ports in here")),
        wire(ether() / IP(**ends, flags="MF") / UDP(sport=60)),
        wire(ether() / IP(src="172.16.0.1", dst="10.0.0.1") / ICMP()),
    ]


@case("acl")
def acl() -> Case:
    params = {"rules": RULES}
    frames = all_sorts() + ipv4_frames() + ipv6_frames()
    model = model_of(RULES, "deny", "permit")
    return Case("acl", params, frames, model, {"connected_gates": 4})


@case("acl", "tries")
def acl_tries() -> Case:
    params = {"rules": RULES, "lookup": "tries", "other": "deny", "default_action": "gate 1"}
    frames = all_sorts(3) + ipv4_frames() + ipv6_frames()
    model = model_of(RULES, "gate 1", "deny")
    return Case("acl", params, frames, model, {"connected_gates": 4})


@case("acl", "addresses")
def acl_addresses() -> Case:
    rules = [
        {key: value for key, value in rule.items() if not key.endswith("ports")} for rule in RULES
    ]
    rules = [rule for rule in rules if "tcp_flags" not in rule][:-1]
    frames = all_sorts(4) + ipv4_frames() + ipv6_frames()
    return Case("acl", {"rules": rules}, frames, model_of(rules, "deny", "permit"))
