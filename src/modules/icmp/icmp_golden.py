# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of ICMP: errors about dropped packets, and answers to pings."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

from golden import Case, Fate, all_sorts, case, ether, noise, truncated, wire
from router_world import (
    COMPANION,
    INTERFACES,
    LAN,
    NEXT_HOPS,
    WAN,
    Meta,
    all_own,
    broadcasts,
    is_host,
    own,
    to,
)
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Timestamp
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import checksum

ERRORS = {
    "ttl_expired": (11, 0),
    "no_route": (3, 0),
    "neighbour_unreachable": (3, 1),
    "mtu_exceeded": (3, 4),
}


def may_be_reported(frame: bytes, meta: Meta) -> bool:
    """RFC 1122, 3.2.2, and RFC 1812, 4.3.2.7."""
    if meta.get("is_originated") or len(frame) < 34 or frame[0] & 1:
        return False
    header_bytes = (frame[14] & 15) * 4
    total = int.from_bytes(frame[16:18], "big")
    if frame[14] >> 4 != 4 or not 20 <= header_bytes <= total <= len(frame) - 14:
        return False
    ip = IP(frame[14 : 14 + total])
    src, dst = IPv4Address(frame[26:30]), IPv4Address(frame[30:34])
    if ip.frag != 0 or not is_host(src) or not is_host(dst):
        return False
    if src in {a.ip for a in all_own()} or {src, dst} & broadcasts():
        return False
    if ip.proto != 1:
        return True
    return total > header_bytes and frame[14 + header_bytes] not in (3, 4, 5, 11, 12)


def answering_address(frame: bytes, meta: Meta) -> IPv4Address:
    sender = IPv4Address(frame[26:30])
    candidates = own(meta["in_interface"]) if "in_interface" in meta else all_own()
    return next((a.ip for a in candidates if sender in a.network), candidates[0].ip)


class IcmpErrors:
    def __init__(self, burst: int) -> None:
        self.left = burst
        self.serial = 0

    def __call__(self, frame: bytes, meta: Meta) -> Fate:
        error = ERRORS.get(meta["drop_reason"])
        if error is None or not may_be_reported(frame, meta):
            return ("drop", "icmp_not_due")
        mtu = 0
        if meta["drop_reason"] == "mtu_exceeded":
            hop = next((h for h in NEXT_HOPS if h["id"] == meta.get("next_hop")), {})
            mtu = {"lan": 1500, "wan": 600}.get(hop.get("interface", ""), 0)
            if mtu == 0:
                return ("drop", "icmp_not_due")
        if self.left == 0:
            return ("drop", "icmp_rate_limited")
        self.left -= 1
        self.serial += 1
        total = int.from_bytes(frame[16:18], "big")
        quote = frame[14 : 14 + min(total, 576 - 28)]
        body = bytes([*error, 0, 0, 0, 0]) + mtu.to_bytes(2, "big") + quote
        body = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
        ip = IP(
            src=str(answering_address(frame, meta)),
            dst=str(IPv4Address(frame[26:30])),
            tos=0xC0,
            id=self.serial,
            ttl=64,
            proto=1,
        )
        ends = Ether(dst="00:00:00:00:00:00", src="00:00:00:00:00:00", type=0x0800)
        return ("out", 0, bytes(ends) + bytes(ip / Raw(body)))


def icmp_of(kind: int, code: int = 0) -> ICMP:
    # Scapy would put the time of day into timestamps.
    times: dict[str, Any] = {"ts_ori": 1, "ts_rx": 2, "ts_tx": 3} if kind in (13, 14) else {}
    return ICMP(type=kind, code=code, **times)


def sender_of(icmp: ICMP, **more: Any) -> bytes:
    return wire(ether() / IP(src="10.0.0.50", dst="8.8.8.8", **more) / icmp)


def dropped_traffic() -> Iterator[tuple[bytes, Meta]]:
    lan = {"in_interface": LAN}
    for reason in (*ERRORS, "no_interface", "route_drop"):
        for n_bytes in (0, 9, 520, 521, 1400):
            packet = ether() / IP(src="10.0.0.50", dst="8.8.8.8") / UDP() / Raw(b"q" * n_bytes)
            yield wire(packet), {**lan, "drop_reason": reason, "next_hop": 2}
    for hop in (1, 3, 4, 5, 77):
        yield to("8.8.8.8"), {**lan, "drop_reason": "mtu_exceeded", "next_hop": hop}
    expired: Meta = {"drop_reason": "ttl_expired"}
    entries: list[Meta] = [{}, {"in_interface": LAN}, {"in_interface": WAN}]
    for meta in entries:
        for src in ("10.0.0.50", "192.168.1.1", "77.0.0.1"):
            yield to("8.8.8.8", src=src), {**meta, **expired}
    expired |= lan
    ends: dict[str, Any] = {"src": "10.0.0.50", "dst": "8.8.8.8"}
    yield (
        wire(ether() / IP(**ends, options=[IPOption_Timestamp(flg=0, timestamp=7)]) / TCP()),
        expired,
    )
    yield wire(ether() / IP(**ends, flags="MF") / UDP()), expired
    yield wire(ether() / IP(**ends, frag=5) / UDP()), expired
    for kind in (0, 3, 4, 5, 8, 11, 12, 13, 42):
        yield sender_of(icmp_of(kind)), expired
    yield wire(ether() / IP(**ends, proto=1, len=20)), expired
    for src in (
        "10.0.0.1",
        "9.9.9.9",
        "10.0.0.255",
        "0.0.0.0",
        "127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
    ):
        yield to("8.8.8.8", src=src), expired
    for dst in ("224.0.0.5", "10.0.0.255", "192.168.1.3", "255.255.255.255", "127.0.0.1"):
        yield to(dst), expired
    yield wire(ether("01:00:5e:00:00:01") / IP(**ends) / UDP()), expired
    yield to("8.8.8.8"), {**expired, "is_originated": True}
    for frame in truncated() + noise(20, 12):
        yield frame, expired


ERROR_SETTING: dict[str, Any] = {"interfaces": INTERFACES, "companions": [COMPANION]}


@case("icmp_error")
def icmp_error() -> Case:
    traffic = list(dropped_traffic())
    frames, metas = [frame for frame, _ in traffic], [meta for _, meta in traffic]
    params = {"table": "main", "burst": 1000}
    return Case("icmp_error", params, frames, IcmpErrors(1000), ERROR_SETTING, metas)


@case("icmp_error", "rate_limited")
def icmp_error_rate_limited() -> Case:
    frames = [to("8.8.8.8", id=i) for i in range(8)] + truncated()
    metas = [{"drop_reason": "no_route", "in_interface": LAN} for _ in frames]
    params = {"table": "main", "burst": 3, "errors_per_s": 1}
    return Case("icmp_error", params, frames, IcmpErrors(3), ERROR_SETTING, metas)


def echo_model(frame: bytes) -> Fate:
    other = ("out", 1, frame)
    if len(frame) < 42 or frame[14] != 0x45:
        return other
    total = int.from_bytes(frame[16:18], "big")
    if not 28 <= total <= len(frame) - 14:
        return other
    ip = IP(frame[14 : 14 + total])
    message = frame[34 : 14 + total]
    if ip.proto != 1 or ip.frag != 0 or ip.flags.MF or message[:2] != b"\x08\x00":
        return other
    src, dst = IPv4Address(frame[26:30]), IPv4Address(frame[30:34])
    if not is_host(src) or dst not in {a.ip for a in all_own()}:
        return other
    if checksum(message) != 0:
        return ("drop", "bad_icmp_checksum")
    head = frame[14:22] + b"\x40\x01\0\0" + dst.packed + src.packed
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    reply = b"\0\0\0\0" + message[4:]
    reply = reply[:2] + checksum(reply).to_bytes(2, "big") + reply[4:]
    return ("out", 0, frame[:14] + head + reply + frame[14 + total :])


@case("icmp_echo")
def icmp_echo() -> Case:
    def ping(dst: str, src: str = "10.0.0.50", data: bytes = b"ping", **more: Any) -> bytes:
        return wire(ether() / IP(src=src, dst=dst, **more) / ICMP(type=8, id=7, seq=9) / Raw(data))

    frames = [ping(dst) for dst in ("10.0.0.1", "192.168.1.2", "9.9.9.9", "10.0.0.2", "10.0.0.255")]
    frames += [ping("10.0.0.1", data=bytes(range(n % 256)) * 5) for n in (0, 1, 2, 63, 255)]
    frames += [ping("10.0.0.1", ttl=1, tos=0x28, flags="DF", id=77), ping("10.0.0.1", flags="MF")]
    frames += [
        ping("10.0.0.1", frag=3),
        ping("10.0.0.1", options=[IPOption_Timestamp(flg=0, timestamp=7)]),
    ]
    frames += [
        ping("10.0.0.1", src=src) for src in ("0.0.0.0", "127.0.0.1", "224.1.1.1", "9.9.9.9")
    ]
    bad = bytearray(ping("10.0.0.1"))
    bad[45] ^= 1
    frames.append(bytes(bad))
    nothing = ether() / IP(src="10.0.0.50", dst="10.0.0.1") / ICMP(type=8, id=0, seq=0)
    frames.append(wire(nothing))
    for kind, code in ((0, 0), (8, 1), (3, 3), (13, 0)):
        ip = IP(src="10.0.0.50", dst="10.0.0.1")
        frames.append(wire(ether() / ip / icmp_of(kind, code)))
    frames += [
        wire(ether() / IP(src="10.0.0.50", dst="10.0.0.1", len=n) / ICMP()) for n in (20, 27, 47)
    ]
    setting = {"connected_gates": 2, "interfaces": INTERFACES}
    return Case("icmp_echo", {}, frames + all_sorts(13), echo_model, setting)
