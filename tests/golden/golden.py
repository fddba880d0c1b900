# SPDX-License-Identifier: BSD-3-Clause
"""What golden cases are made of, and frames that many of them share."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Timestamp
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw

Fate = tuple[Any, ...]
# Called with the frame and, where the case has metadata packet by packet, with the packet's own.
Model = Callable[..., Fate | list[Fate]]

DST = "02:00:00:00:00:01"
SRC = "02:00:00:00:00:02"


@dataclass
class Case:
    kind: str
    params: dict[str, Any]
    frames: list[bytes]
    model: Model
    setting: dict[str, Any] = field(default_factory=dict)
    metas: list[dict[str, Any]] = field(default_factory=list)


CASES: dict[str, Callable[[], Case]] = {}


def case(kind: str, variant: str = "") -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        name = f"{kind}.{variant}" if variant else kind
        if name in CASES:
            raise ValueError(f"two golden cases are called {name}: give one a variant")
        CASES[name] = make
        return make

    return register


def wire(packet: Packet, min_bytes: int = 60) -> bytes:
    """The frame as it comes off a cable: padded, without check sequence."""
    return bytes(packet).ljust(min_bytes, b"\0")


def ether(dst: str = DST, src: str = SRC) -> Packet:
    return Ether(dst=dst, src=src)


def good_ipv4() -> list[bytes]:
    frames = []
    for i in range(8):
        ip = IP(src=f"10.0.{i}.1", dst=f"192.168.1.{i + 1}", ttl=2 + i * 30, id=i)
        udp = UDP(sport=1000 + i, dport=53)
        frames.append(wire(ether() / ip / udp / Raw(bytes(range(i * 20)))))
        frames.append(wire(ether() / ip / TCP(sport=2000 + i, dport=443, flags="S")))
    ends: dict[str, Any] = {"src": "10.1.1.1", "dst": "10.2.2.2", "id": 9}
    options = [IPOption_Timestamp(flg=0, timestamp=7)]
    frames.append(wire(ether() / IP(**ends) / ICMP()))
    frames.append(wire(ether() / IP(**ends, options=options) / UDP(dport=9)))
    frames.append(wire(ether() / IP(**ends, frag=10) / Raw(b"later part")))
    frames.append(wire(ether() / IP(**ends) / UDP() / Raw(b"x" * 1400)))
    return frames


def other_protocols() -> list[bytes]:
    return [
        wire(ether("ff:ff:ff:ff:ff:ff") / ARP(hwsrc=SRC, psrc="10.0.0.1", pdst="10.0.0.2")),
        wire(ether() / IPv6(src="fd00::1", dst="fd00::2") / UDP(dport=53)),
        wire(ether() / Dot1Q(vlan=5) / IP(src="10.0.0.1", dst="10.0.0.2") / UDP()),
        wire(Ether(dst=DST, src=SRC, type=0x88CC) / Raw(b"\x02\x07")),
    ]


def truncated() -> list[bytes]:
    ip = IP(src="10.0.0.1", dst="10.0.0.2")
    whole = wire(ether() / ip / UDP(sport=1, dport=53) / Raw(b"y" * 40))
    return [whole[:n] for n in (1, 5, 6, 11, 12, 13, 14, 15, 20, 33, 34, 35, 37, 38, 41, 42, 59)]


def noise(n: int, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randint(1, 120)) for _ in range(n)]


def all_sorts(seed: int = 1) -> list[bytes]:
    return good_ipv4() + other_protocols() + truncated() + noise(40, seed)


def same(frame: bytes) -> Fate:
    return ("out", 0, frame)


def tagged() -> list[bytes]:
    ip = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=7, dport=8) / Raw(b"t" * 30)
    frames = [wire(ether() / Dot1Q(vlan=v, prio=v % 8) / ip) for v in (0, 1, 5, 100, 4094, 4095)]
    pairs = [(5, 6), (5, 7), (100, 1), (7, 7)]
    frames += [wire(ether() / Dot1AD(vlan=a) / Dot1Q(vlan=b, prio=3) / ip) for a, b in pairs]
    frames += [wire(ether() / Dot1Q(vlan=5) / Dot1Q(vlan=6) / ip)]
    frames += [wire(ether() / Dot1AD(vlan=5) / Dot1AD(vlan=6) / Dot1Q(vlan=7) / ip)]
    frames += [frames[2][:n] for n in range(12, 24)] + [frames[6][:n] for n in range(12, 28)]
    return frames
