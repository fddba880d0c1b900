# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of static_nat."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

from golden import Case, Fate, case, ether, noise, truncated, wire
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror, IPOption_Timestamp
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from translation import ERRORS, fault, is_cut_short, offset_of, quoted, renewed


# --- static pairs
def exchanged(address: str, pairs: list[tuple[str, str]]) -> str:
    for before, after in pairs:
        network, target = IPv4Network(before), IPv4Network(after)
        if IPv4Address(address) in network:
            host = int(IPv4Address(address)) - int(network.network_address)
            return str(IPv4Address(int(target.network_address) + host))
    return address


def static_model(sources: list[tuple[str, str]], destinations: list[tuple[str, str]]) -> Any:
    def model(frame: bytes) -> Fate:
        wrong = fault(frame)
        if wrong:
            return ("drop", wrong)
        if is_cut_short(frame[14:]):
            return ("drop", "too_short")
        before = Ether(frame)
        after = Ether(frame)
        ip = after[IP]
        ip.src, ip.dst = exchanged(ip.src, sources), exchanged(ip.dst, destinations)
        if IPerror in after and after[ICMP].type in ERRORS:
            quote = after[IPerror]
            quote.src = exchanged(quote.src, destinations)
            quote.dst = exchanged(quote.dst, sources)
        if bytes(after) == bytes(before):
            return ("out", 0, frame)
        if offset_of(frame[14:]) or ip.flags.MF:
            del ip.chksum
            return ("out", 0, bytes(after))
        return ("out", 0, bytes(renewed(after)))

    return model


def static_frames() -> list[bytes]:
    frames = []
    for i in range(6):
        ends = {"src": f"10.0.{i % 3}.{i + 1}", "dst": f"20.0.{i % 2}.{i + 9}", "id": i}
        frames.append(wire(ether() / IP(**ends) / UDP(sport=i + 1, dport=53) / Raw(b"q" * i * 9)))
        frames.append(wire(ether() / IP(**ends) / TCP(sport=i + 1, dport=80, flags="PA") / b"data"))
        frames.append(wire(ether() / IP(**ends) / ICMP(id=i) / b"ping"))
        frames.append(wire(ether() / IP(**ends, proto=99) / Raw(b"x" * 30)))
        frames.append(wire(ether() / IP(**ends) / UDP(chksum=0) / b"no sum"))
        options = [IPOption_Timestamp(flg=0, timestamp=7)]
        frames.append(wire(ether() / IP(**ends, options=options) / UDP(dport=9) / b"options"))
        frames.append(wire(ether() / IP(**ends, frag=10, proto=17) / Raw(b"later part")))
    for kind in (3, 11, 12):
        for packet in (UDP(sport=5, dport=53) / b"abc", TCP(sport=5, dport=80) / b"abc"):
            heard = IP(src="20.0.0.9", dst="10.0.0.1") / packet
            frames.append(quoted(heard, src="10.0.0.1", dst="20.0.0.9", type=kind))
            frames.append(quoted(heard, src="1.2.3.4", dst="20.0.1.7", type=kind))
            sent = IP(src="20.0.0.9", dst="7.7.7.7") / packet
            frames.append(quoted(sent, src="7.7.7.7", dst="20.0.0.9", type=kind))
    return frames + truncated() + [frame for frame in noise(40, 3) if len(frame) < 34]


def static_case(variant: str, pairs: list[dict[str, str]]) -> Case:
    sources = [(p["inside"], p["outside"]) for p in pairs if p["direction"] != "destination"]
    targets = [(p["outside"], p["inside"]) for p in pairs if p["direction"] != "source"]
    del variant
    return Case("static_nat", {"pairs": pairs}, static_frames(), static_model(sources, targets))


@case("static_nat")
def static_nat() -> Case:
    return static_case(
        "", [{"inside": "10.0.0.0/24", "outside": "30.0.0.0/24", "direction": "source"}]
    )


@case("static_nat", "both")
def static_nat_both() -> Case:
    pairs = [
        {"inside": "10.0.0.0/24", "outside": "30.0.0.0/24", "direction": "source"},
        {"inside": "10.0.1.0/24", "outside": "20.0.1.0/24", "direction": "both"},
        {"inside": "192.168.0.0/25", "outside": "20.0.0.0/25", "direction": "destination"},
    ]
    return static_case("both", pairs)
