# SPDX-License-Identifier: BSD-3-Clause
"""Where transport headers lie and what their sums are, and frames that have some of each sort."""

from __future__ import annotations

from typing import Any

from golden import Fate, ether, wire
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment, in4_chksum
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    in6_chksum,
)
from scapy.packet import Packet, Raw
from scapy.utils import checksum

SUM_AT = {(4, 1): 2, (4, 6): 16, (4, 17): 6, (6, 58): 2, (6, 6): 16, (6, 17): 6}


def ipv6() -> list[bytes]:
    ends = {"src": "2001:db8::1", "dst": "2001:db8:7::2"}
    load = Raw(bytes(range(33)))
    packets: list[Packet] = [
        IPv6(**ends) / TCP(sport=5, dport=80) / load,
        IPv6(**ends) / UDP(sport=5, dport=53) / load,
        IPv6(**ends, tc=0xB8, hlim=9) / ICMPv6EchoRequest(id=3, seq=4, data=b"ping"),
        IPv6(**ends) / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / UDP(sport=1, dport=2) / load,
        IPv6(**ends) / IPv6ExtHdrFragment(m=1, id=7, nh=17) / load,
        IPv6(**ends) / IPv6ExtHdrFragment(offset=9, id=7, nh=17) / load,
        IPv6(**ends) / IPv6ExtHdrFragment(id=7) / UDP(sport=1, dport=2) / load,
        IPv6(**ends) / IPv6ExtHdrRouting(addresses=["2001:db8::9"], segleft=1) / UDP() / load,
        IPv6(**ends, nh=59),
        IPv6(**ends) / UDP(sport=5, dport=53, chksum=0) / load,
    ]
    return [wire(ether() / packet) for packet in packets]


def transports() -> list[bytes]:
    ends = {"src": "10.0.0.1", "dst": "192.168.3.4"}
    frames = [wire(ether() / IP(**ends) / UDP(sport=1, dport=2) / Raw(b"o" * n)) for n in range(9)]
    frames += [wire(ether() / IP(**ends) / TCP(flags="S") / Raw(b"p" * n)) for n in (0, 1, 700)]
    frames += [wire(ether() / IP(**ends) / ICMP(id=n) / Raw(b"q" * n)) for n in (0, 1, 30)]
    frames.append(wire(ether() / IP(**ends) / UDP(chksum=0) / Raw(b"none")))
    frames.append(wire(ether() / IP(**ends) / UDP(len=12) / Raw(b"behind the end")))
    frames.append(wire(ether() / IP(**ends) / UDP(len=7) / Raw(b"short")))
    frames.append(wire(ether() / IP(**ends) / UDP(len=70) / Raw(b"long")))
    frames.append(wire(ether() / IP(**ends, proto=47) / Raw(b"gre")))
    big = IP(**ends) / UDP(sport=1, dport=2) / Raw(b"f" * 2000)
    frames += [wire(ether() / part) for part in fragment(big, fragsize=1400)]  # type: ignore[no-untyped-call]
    return frames + ipv6()


def place_of(frame: bytes) -> tuple[str, int, int, int, int]:
    """What a packet is (whole, fragment, other, or a fault), version, protocol, start and end."""
    ip = frame[14:]
    if len(ip) < 20:
        return ("too_short", 0, 0, 0, 0)
    if ip[0] >> 4 == 4:
        start, end = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
        if start < 20 or start > len(ip):
            return ("bad_header_length", 4, 0, 0, 0)
        if end < start or end > len(ip):
            return ("bad_total_length", 4, 0, 0, 0)
        kind = "fragment" if int.from_bytes(ip[6:8], "big") & 0x3FFF else "whole"
        return (kind, 4, ip[9], start, end)
    if ip[0] >> 4 != 6:
        return ("bad_version", 0, 0, 0, 0)
    if len(ip) < 40:
        return ("too_short", 6, 0, 0, 0)
    start, end, proto = 40, 40 + int.from_bytes(ip[4:6], "big"), ip[6]
    if end > len(ip):
        return ("bad_total_length", 6, 0, 0, 0)
    while proto in (0, 43, 44, 51, 60):
        header = ip[start:end]
        if len(header) < 8:
            return ("bad_header_length", 6, 0, 0, 0)
        size = 8 if proto == 44 else (header[1] + 2) * 4 if proto == 51 else (header[1] + 1) * 8
        if size > len(header):
            return ("bad_header_length", 6, 0, 0, 0)
        if proto == 43 and header[3]:
            return ("other", 6, 0, 0, 0)
        if proto == 44 and int.from_bytes(header[2:4], "big") & 0xFFF9:
            return ("fragment", 6, header[0], start + size, end)
        proto, start = header[0], start + size
    return ("whole", 6, proto, start, end)


def right_sum(frame: bytes, version: int, proto: int, start: int, end: int) -> int:
    at = SUM_AT[version, proto]
    part = frame[14 + start : 14 + end]
    part = part[:at] + b"\0\0" + part[at + 2 :]
    if version == 6:
        found = in6_chksum(proto, IPv6(frame[14:54]), part)  # type: ignore[no-untyped-call]
    elif proto == 1:
        found = checksum(part)
    else:
        ip = IP(frame[14 : 14 + start])
        ip.len = start + len(part)  # a UDP length may end before the packet does
        found = in4_chksum(proto, ip, part)
    return 0xFFFF if found == 0 and proto == 17 else found


def sum_model(updates: bool) -> Any:
    def model(frame: bytes) -> Fate:
        kind, version, proto, start, end = place_of(frame)
        if kind not in ("whole", "fragment", "other"):
            return ("drop", kind)
        if kind != "whole" or (version, proto) not in SUM_AT:
            return ("out", 0, frame)
        if end - start < (20 if proto == 6 else 8):
            return ("drop", "bad_l4_length")
        at = 14 + start + SUM_AT[version, proto]
        given = int.from_bytes(frame[at : at + 2], "big")
        if proto == 17:
            own = int.from_bytes(frame[14 + start + 4 : 14 + start + 6], "big")
            if not 8 <= own <= end - start:
                return ("drop", "bad_l4_length")
            end = start + own
            if given == 0 and version == 4:
                return ("out", 0, frame)
        right = right_sum(frame, version, proto, start, end)
        if updates:
            return ("out", 0, frame[:at] + right.to_bytes(2, "big") + frame[at + 2 :])
        # 0 and 0xffff are the same sum, but for UDP without one.
        is_same = given % 0xFFFF == right % 0xFFFF and not (given == 0 and proto == 17)
        return ("out", 0, frame) if is_same else ("drop", "bad_l4_checksum")

    return model
