# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of modules that look into IPv6 headers."""

from __future__ import annotations

from ipaddress import IPv6Address

from golden import Case, Fate, case, ether, noise, wire
from router_world6 import A, B
from scapy.layers.inet import TCP, UDP
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.ipsec import AH
from scapy.packet import Packet, Raw

UDP_NEXT, FRAGMENT, AUTHENTICATION, NONE = 17, 44, 51, 59
EXTENSIONS = (0, 43, FRAGMENT, 60, AUTHENTICATION, 135)


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
