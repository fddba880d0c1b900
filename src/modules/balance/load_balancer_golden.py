# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of the load balancer: Maglev's table and the flow hash, written anew in Python."""

from __future__ import annotations

import ipaddress
import struct
from typing import Any

from golden import Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Timestamp
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    PadN,
)
from scapy.packet import Packet, Raw

MASK = (1 << 64) - 1
PROTOS = {"tcp": 6, "udp": 17, "any": 0}
PORT_PROTOS = (6, 17, 132)
EXTENSIONS = {0: 8, 43: 8, 60: 8, 51: 4}  # unit of the length field


def hash_name(name: str, seed: int) -> int:
    value = 0xCBF29CE484222325 ^ seed
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    value ^= value >> 32
    value = value * 0xD6E8FEB86659FD93 & MASK
    return value ^ value >> 32


def maglev(weights: dict[str, int], n_slots: int) -> list[str]:
    """Section 3.4 of the paper: in turn, each takes its next preferred slot that is free."""
    slots: list[str | None] = [None] * n_slots
    orders = {}
    for name in sorted(weights):
        offset = hash_name(name, 1) % n_slots
        skip = hash_name(name, 2) % (n_slots - 1) + 1
        orders[name] = iter([(offset + j * skip) % n_slots for j in range(n_slots)])
    turns = dict.fromkeys(orders, 0)
    most = max(weights.values())
    n_free, turn = n_slots, 0
    while n_free:
        turn += 1
        for name, order in orders.items():
            # By round t a backend has had t * weight / most turns.
            if turn * weights[name] // most == turns[name] or not n_free:
                continue
            turns[name] += 1
            slot = next(slot for slot in order if slots[slot] is None)
            slots[slot] = name
            n_free -= 1
    return [name for name in slots if name is not None]


def mix(a: int, b: int, seed: int) -> int:
    product = ((a ^ seed ^ 0x8BB84B93962EACC9) & MASK) * (b ^ 0x4B33A62ED433D4A3)
    folded = product & MASK ^ product >> 64
    return folded * 0x9E3779B97F4A7C15 & MASK ^ folded >> 29


def little(data: bytes) -> int:
    return int.from_bytes(data, "little")


class Short(Exception):
    """The packet ends before what it claims."""


def flow_of_ipv4(ip: bytes, seed: int) -> tuple[str, int, int, int]:
    """Destination, protocol, destination port (0 = none) and hash."""
    header, (total, _, place) = (ip[0] & 15) * 4, struct.unpack(">HHH", ip[2:8])
    proto, is_first, is_whole = ip[9], place & 0x1FFF == 0, place & 0x3FFF == 0
    if header < 20 or total < header or total > len(ip):
        raise Short
    needs_port = is_first and proto in (6, 17)
    if needs_port and total < header + 4:
        raise Short
    port = struct.unpack(">H", ip[header + 2 : header + 4])[0] if needs_port else 0
    has_ports = is_whole and proto in PORT_PROTOS and len(ip) >= header + 4
    rest = proto << 32 | (little(ip[header : header + 4]) if has_ports else 0)
    text = str(ipaddress.IPv4Address(ip[16:20]))
    return text, proto, port, mix(little(ip[12:20]), rest, seed)


def flow_of_ipv6(ip: bytes, seed: int) -> tuple[str, int, int, int]:
    total = 40 + struct.unpack(">H", ip[4:6])[0]
    if total > len(ip):
        raise Short
    proto, at, is_fragment, is_first = ip[6], 40, False, True
    while is_first and (proto in EXTENSIONS or proto == 44):
        if at + 8 > total:
            raise Short
        if proto == 44:
            place = struct.unpack(">H", ip[at + 2 : at + 4])[0]
            is_fragment, is_first = place & 0xFFF9 != 0, place & 0xFFF8 == 0
            proto, at = ip[at], at + 8
        else:
            extra = 8
            proto, at = ip[at], at + ip[at + 1] * EXTENSIONS[proto] + extra
    needs_port = is_first and proto in (6, 17)
    if at + (4 if needs_port else 0) > total:
        raise Short
    port = struct.unpack(">H", ip[at + 2 : at + 4])[0] if needs_port else 0
    flow_proto = 44 if is_fragment else proto
    has_ports = flow_proto in PORT_PROTOS and total >= at + 4
    rest = flow_proto << 32 | (little(ip[at : at + 4]) if has_ports else 0)
    source = mix(little(ip[8:16]), little(ip[16:24]), seed)
    both = mix(source ^ little(ip[24:32]), little(ip[32:40]), seed)
    return str(ipaddress.IPv6Address(ip[24:40])), proto, port, mix(both, rest, seed)


def flow_of(frame: bytes, seed: int) -> tuple[str, int, int, int] | None:
    if len(frame) < 15:
        raise Short
    kind, ip = struct.unpack(">H", frame[12:14])[0], frame[14:]
    for number, version, least, flow in (
        (0x0800, 4, 20, flow_of_ipv4),
        (0x86DD, 6, 40, flow_of_ipv6),
    ):
        if kind == number and ip[0] >> 4 == version:
            if len(ip) < least:
                raise Short
            return flow(ip, seed)
    return None


class Balancer:
    def __init__(self, params: dict[str, Any]) -> None:
        self.seed = params["flow_seed"]
        self.other_gate = params.get("other_gate")
        self.services: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
        for service in params["services"]:
            key = (service["address"], PROTOS[service.get("proto", "any")], service.get("port", 0))
            backends = {b["name"]: b for b in service["backends"]}
            weights = {name: b.get("weight", 1) for name, b in backends.items()}
            slots = maglev(weights, params["table_slots"]) if weights else []
            self.services[key] = [backends[name] for name in slots]

    def fate(self, frame: bytes) -> Fate:
        try:
            flow = flow_of(frame, self.seed)
        except Short:
            return ("drop", "too_short")
        slots = None
        if flow is not None:
            address, proto, port, flow_hash = flow
            for key in ((address, proto, port), (address, proto, 0), (address, 0, 0)):
                slots = self.services.get(key) if slots is None else slots
        if slots is None:
            if self.other_gate is None:
                return ("drop", "no_service")
            return ("out", self.other_gate, frame)
        if not slots:
            return ("drop", "no_backend")
        backend = slots[(flow_hash >> 32) * len(slots) >> 32]
        mac = bytes.fromhex(backend["mac"].replace(":", "")) if "mac" in backend else frame[:6]
        return ("out", backend["gate"], mac + frame[6:])


def frames_to(address: str, ports: tuple[int, ...]) -> list[bytes]:
    is_ipv6 = ":" in address
    frames = []
    for i in range(12):
        source = f"fd00::{i + 1}" if is_ipv6 else f"10.0.{i}.1"
        ip = (IPv6 if is_ipv6 else IP)(src=source, dst=address)
        for port in ports:
            frames.append(wire(ether() / ip / TCP(sport=3000 + i, dport=port)))
            frames.append(wire(ether() / ip / UDP(sport=4000 + i, dport=port) / Raw(b"q" * i)))
    return frames


def awkward_ipv4(address: str) -> list[bytes]:
    ends: dict[str, Any] = {"src": "10.3.3.3", "dst": address}
    options = [IPOption_Timestamp(flg=0, timestamp=7)]
    packets: list[Packet] = [
        IP(**ends) / ICMP(),
        IP(**ends, options=options) / TCP(sport=5, dport=80),
        IP(**ends, flags="MF") / UDP(sport=5, dport=53) / Raw(b"x" * 16),
        IP(**ends, frag=3) / Raw(b"the rest"),
        IP(**ends, proto=132) / Raw(b"\x10\x20\x30\x40" * 4),
        IP(**ends, proto=6) / Raw(b"\0\1\0"),
        IP(**ends, len=900) / TCP(dport=80),
        IP(**ends, len=22) / TCP(dport=80),
    ]
    return [wire(ether() / packet) for packet in packets]


def awkward_ipv6(address: str) -> list[bytes]:
    ip = IPv6(src="fd00::33", dst=address)
    pad = [PadN(optdata=b"\0" * 12)]
    packets: list[Packet] = [
        ip / IPv6ExtHdrHopByHop() / TCP(sport=6, dport=80),
        ip / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt(options=pad) / UDP(sport=6, dport=53),
        ip / IPv6ExtHdrFragment(m=1, id=5) / UDP(sport=6, dport=53) / Raw(b"z" * 8),
        ip / IPv6ExtHdrFragment(offset=2, nh=17, id=5) / Raw(b"z" * 8),
        ip / IPv6ExtHdrFragment(id=6) / TCP(sport=6, dport=80),
        IPv6(src="fd00::33", dst=address, nh=59),
        IPv6(src="fd00::33", dst=address, plen=200) / TCP(dport=80),
    ]
    return [wire(ether() / packet, 0) for packet in packets]


@case("load_balancer")
def load_balancer() -> Case:
    web = [{"name": f"web-{i}", "gate": i % 4, "weight": 1 + i % 3} for i in range(9)]
    direct = [{"name": f"dns-{i}", "gate": 4, "mac": f"02:00:00:00:01:{i:02x}"} for i in range(5)]
    params = {
        "table_slots": 1009,
        "flow_seed": 77,
        "services": [
            {"name": "web", "address": "192.0.2.10", "proto": "tcp", "port": 80, "backends": web},
            {"name": "dns", "address": "192.0.2.10", "proto": "udp", "backends": direct},
            {"name": "rest", "address": "192.0.2.10", "backends": web[:3]},
            {"name": "none", "address": "192.0.2.11", "backends": []},
        ],
    }
    frames = frames_to("192.0.2.10", (80, 53)) + frames_to("192.0.2.11", (80,))[:4]
    frames += awkward_ipv4("192.0.2.10") + all_sorts(5)
    return Case("load_balancer", params, frames, Balancer(params).fate)


@case("load_balancer", "ipv6")
def load_balancer_ipv6() -> Case:
    backends = [{"name": f"server {i}", "gate": i} for i in range(6)]
    params = {
        "table_slots": 2003,
        "flow_seed": 1,
        "other_gate": 7,
        "services": [
            {
                "name": "web",
                "address": "2001:db8::10",
                "proto": "tcp",
                "port": 80,
                "backends": backends,
            },
            {"name": "udp", "address": "2001:db8::10", "proto": "udp", "backends": backends[:4]},
            {"name": "all", "address": "2001:db8::11", "backends": backends[3:]},
        ],
    }
    frames = frames_to("2001:db8::10", (80, 53)) + frames_to("2001:db8::11", (99,))
    for address in ("2001:db8::10", "2001:db8::11"):
        frames += awkward_ipv6(address)
    whole = frames[-5]
    frames += [whole[:n] for n in (14, 40, 53, 54, 61, 62, 66)]
    return Case("load_balancer", params, frames + all_sorts(6), Balancer(params).fate)
