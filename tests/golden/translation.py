# SPDX-License-Identifier: BSD-3-Clause
"""What translators of addresses have in common: faults, sums made anew, fragments."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from golden import ether, wire
from scapy.layers.inet import ICMP, IP, UDP, UDPerror
from scapy.packet import Packet

SERVER = "8.8.8.8"
OTHER = "9.9.9.9"
ROUTER = "77.0.0.1"
ERRORS = (3, 4, 11, 12)


def fault(frame: bytes) -> str:
    """What is wrong with the IPv4 header at byte 14, or nothing."""
    ip = frame[14:]
    if len(ip) < 20:
        return "too_short"
    if ip[0] >> 4 != 4:
        return "bad_version"
    header = (ip[0] & 15) * 4
    if header < 20 or header > len(ip):
        return "bad_header_length"
    total = int.from_bytes(ip[2:4], "big")
    return "bad_total_length" if total < header or total > len(ip) else ""


def offset_of(ip: bytes) -> int:
    return int.from_bytes(ip[6:8], "big") & 0x1FFF


def is_cut_short(ip: bytes) -> bool:
    """Whether a packet that has its transport header ends before the checksum in it."""
    room = int.from_bytes(ip[2:4], "big") - (ip[0] & 15) * 4
    return offset_of(ip) == 0 and room < {6: 18, 17: 8, 1: 4}.get(ip[9], 0)


def renewed(packet: Packet) -> Packet:
    """With all checksums to be computed anew, those of a quoted packet as well."""
    layer: Packet | None = packet
    while layer:
        is_without = isinstance(layer, (UDP, UDPerror)) and layer.chksum == 0
        if hasattr(layer, "chksum") and not is_without:
            del layer.chksum
        layer = layer.payload if layer.payload else None
    return packet


def renewed_first_fragment(before: Packet, after: Packet) -> Packet:
    """The transport checksum covers fragments that are not there: corrected by RFC 1624."""

    def words(packet: Packet) -> list[int]:
        ends = IPv4Address(packet[IP].src).packed + IPv4Address(packet[IP].dst).packed
        ends += packet[UDP].sport.to_bytes(2, "big") + packet[UDP].dport.to_bytes(2, "big")
        return [int.from_bytes(ends[i : i + 2], "big") for i in range(0, len(ends), 2)]

    if before[UDP].chksum:
        total = 0xFFFF - before[UDP].chksum
        total += sum(0xFFFF - word for word in words(before)) + sum(words(after))
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        after[UDP].chksum = 0xFFFF - total or 0xFFFF
    del after[IP].chksum
    return after


def quoted(packet: Packet, **error: Any) -> bytes:
    """An ICMP error about a packet, with all of it, so that scapy can do its sums."""
    return wire(
        ether() / IP(src=error["src"], dst=error["dst"]) / ICMP(type=error["type"]) / packet
    )
