# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of what answers and reports in IPv6."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

from golden import Case, Fate, case, ether, wire
from router_world6 import COMPANION, INTERFACES, LAN_LINK, A, B, own_addresses, to
from scapy.layers.inet import UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NS,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw


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
