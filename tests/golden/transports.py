# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of transport checksums, rewritten fields and tunnels; scapy makes the sums."""

from __future__ import annotations

from typing import Any

from golden import Case, Fate, all_sorts, case, ether, good_ipv4, wire
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
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
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


def flipped(frames: list[bytes]) -> list[bytes]:
    """Each frame with one bit of its last byte but a few, or of its header, turned."""
    out = []
    for i, frame in enumerate(frames):
        at = (36, 50, 55)[i % 3]
        out.append(frame[:at] + bytes([frame[at] ^ 4]) + frame[at + 1 :])
    return out


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


@case("l4_checksum")
def l4_checksum() -> Case:
    frames = transports()
    return Case("l4_checksum", {}, frames + flipped(frames) + all_sorts(51), sum_model(False))


@case("l4_checksum", "update")
def l4_checksum_update() -> Case:
    frames = transports()
    params = {"mode": "update"}
    return Case("l4_checksum", params, frames + flipped(frames) + all_sorts(52), sum_model(True))


def anew(frame: bytes) -> bytes:
    """All checksums of a frame that had right ones, computed again by scapy's sums."""
    kind, version, proto, start, end = place_of(frame)
    if version == 4:
        zeroed = frame[:24] + b"\0\0" + frame[26:]
        frame = frame[:24] + checksum(zeroed[14 : 14 + start]).to_bytes(2, "big") + frame[26:]
    if kind != "whole" or (version, proto) not in SUM_AT:
        return frame
    at = 14 + start + SUM_AT[version, proto]
    if proto == 17 and frame[at : at + 2] == b"\0\0":
        return frame
    if proto == 17:
        end = start + int.from_bytes(frame[14 + start + 4 : 14 + start + 6], "big")
    right = right_sum(frame, version, proto, start, end)
    return frame[:at] + right.to_bytes(2, "big") + frame[at + 2 :]


@case("rewrite")
def rewrite() -> Case:
    fields = [
        {"offset": 6, "size_bytes": 6, "value": "02:00:00:00:00:ee"},
        {"base": "l3", "offset": 15, "size_bytes": 3, "value": "0x010203"},
        {"base": "l3", "offset": 1, "size_bytes": 1, "mask": "0x0f", "value": 3},
        {"base": "l4", "offset": 0, "size_bytes": 4, "mask": "0xffff00ff", "value": "0x12340056"},
    ]

    def model(frame: bytes) -> Fate:
        kind, _, _, start, end = place_of(frame)
        if kind not in ("whole", "fragment", "other"):
            return ("drop", kind)
        if end - start < 4:
            return ("drop", "too_short")
        new = bytearray(frame)
        new[6:12] = bytes.fromhex("0200000000ee")
        new[29:32] = b"\x01\x02\x03"
        new[15] = new[15] & 0xF0 | 3
        at = 14 + start
        new[at : at + 4] = bytes([0x12, 0x34, new[at + 2], 0x56])
        return ("out", 0, anew(bytes(new)))

    # The last field is one of ports: of ICMP it would be the checksum itself.
    whole = [
        f
        for f in transports() + good_ipv4()
        if place_of(f)[0] == "whole" and place_of(f)[2] not in (1, 58)
    ]
    lengths_right = [f for f in whole if sum_model(False)(f)[0] == "out"]
    short = [wire(ether() / IP(src="1.2.3.4", dst="5.6.7.8", proto=99) / Raw(b"ab"))]
    return Case("rewrite", {"fields": fields}, lengths_right + short + [b"x" * 30], model)


MASK64 = (1 << 64) - 1


def mix_words(a: int, b: int, seed: int) -> int:
    """The engine's mixing of two words, from its description."""
    product = (a ^ seed ^ 0x8BB84B93962EACC9) * (b ^ 0x4B33A62ED433D4A3)
    folded = (product ^ product >> 64) & MASK64
    return (folded * 0x9E3779B97F4A7C15 & MASK64) ^ folded >> 29


def word(data: bytes) -> int:
    return int.from_bytes(data, "little")


def inner_hash(frame: bytes, l3: int) -> int:
    ip = frame[l3:]
    kind = int.from_bytes(frame[l3 - 2 : l3], "big")
    if kind == 0x86DD and len(ip) >= 40:
        rest = ip[6] << 32
        if ip[6] in (6, 17) and len(ip) >= 44:
            rest |= word(ip[40:44])
        src = mix_words(word(ip[8:16]), word(ip[16:24]), 0)
        return mix_words(src ^ word(ip[24:32]), word(ip[32:40]), rest)
    is_ip = kind == 0x0800 or l3 != 14
    if not is_ip or len(ip) < 20 or ip[0] >> 4 != 4:
        return mix_words(word(frame[:8]), word(frame[6:14]), 0)
    rest = ip[9] << 32
    l4 = (ip[0] & 15) * 4
    if ip[9] in (6, 17, 132) and not int.from_bytes(ip[6:8], "big") & 0x3FFF and len(ip) >= l4 + 4:
        rest |= word(ip[l4 : l4 + 4])
    return mix_words(word(ip[12:20]), rest, 0)


def port_of(frame: bytes) -> int:
    return 49152 + (inner_hash(frame, 14) >> 50)


@case("vxlan_encap")
def vxlan_encap() -> Case:
    tunnels = [
        {"id": 2, "vni": 0xABCDEF, "remote": "192.0.2.9", "local": "192.0.2.1"},
        {
            "id": 3,
            "vni": 7,
            "remote": "198.51.100.9",
            "local": "192.0.2.1",
            "dst_mac": "02:00:00:00:00:0d",
            "src_mac": "02:00:00:00:00:0c",
        },
    ]
    frames = transports() + all_sorts(53)
    metas = [{"tunnel_id": (2, 2, 3, 9, 3)[i % 5]} for i in range(len(frames))]
    by_id = {t["id"]: t for t in tunnels}

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        if len(frame) < 14:
            return ("drop", "too_short")
        tunnel = by_id.get(meta["tunnel_id"])
        if tunnel is None:
            return ("drop", "unknown_tunnel")
        kind, tos, ttl = int.from_bytes(frame[12:14], "big"), 0, 64
        if kind == 0x0800 and len(frame) >= 34:
            tos, ttl = frame[15], frame[22]
        elif kind == 0x86DD and len(frame) >= 54:
            tos, ttl = int.from_bytes(frame[14:16], "big") >> 4 & 255, frame[21]
        none = "00:00:00:00:00:00"
        macs = {"dst": tunnel.get("dst_mac", none), "src": tunnel.get("src_mac", none)}
        outer = IP(src=tunnel["local"], dst=tunnel["remote"], tos=tos, ttl=ttl, id=0, flags="DF")
        udp = UDP(sport=port_of(frame), dport=4789, chksum=0)
        vxlan = VXLAN(flags=8, vni=tunnel["vni"])
        return ("out", 0, bytes(Ether(**macs, type=0x800) / outer / udp / vxlan / Raw(frame)))

    return Case("vxlan_encap", {"tunnels": tunnels, "ttl": 0}, frames, model, {}, metas)


def tunnelled() -> list[bytes]:
    ends = {"src": "192.0.2.9", "dst": "192.0.2.1"}
    inner = wire(ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / Raw(b"in" * 20))
    tag = wire(ether() / Dot1Q(vlan=3) / IP(src="10.0.0.1", dst="10.0.0.2") / UDP())

    def make(vni: int = 7, load: bytes = inner, **more: Any) -> bytes:
        ip = {**ends, **{k: v for k, v in more.items() if k in ("tos", "options", "frag", "flags")}}
        udp = {"sport": 50000, "dport": 4789, **more.get("udp", {})}
        own = VXLAN(flags=more.get("own_flags", 8), vni=vni)
        return wire(ether() / IP(**ip) / UDP(**udp) / own / Raw(load))

    frames = [make(), make(8, tag), make(9), make(8, inner[:14]), make(7, inner[:13])]
    frames += [make(udp={"chksum": 0}), make(udp={"chksum": 0x1234}), make(udp={"dport": 53})]
    frames += [make(own_flags=0), make(own_flags=0xFF), make(flags="MF"), make(frag=3)]
    frames += [make(udp={"len": 29}), make(udp={"len": 60, "chksum": 0}), make(udp={"len": 2000})]
    frames += [make(tos=1), make(tos=0xB8), make() + b"padding"]
    return frames + [frames[0][:n] for n in range(30, len(frames[0]), 3)]


@case("vxlan_decap")
def vxlan_decap() -> Case:
    gates = {7: 1, 8: 2}

    def model(frame: bytes) -> Fate:
        kind, version, proto, start, end = place_of(frame)
        if kind not in ("whole", "fragment", "other", "bad_version"):
            return ("drop", kind)
        udp = frame[14 + start : 14 + end]
        dport = int.from_bytes(udp[2:4], "big")
        if (kind, version, proto) != ("whole", 4, 17) or len(udp) < 8 or dport != 4789:
            return ("out", 0, frame)
        own = int.from_bytes(udp[4:6], "big")
        if not 30 <= own <= len(udp) or not udp[8] & 8:
            return ("drop", "bad_vxlan")
        given = int.from_bytes(udp[6:8], "big")
        if given and given != right_sum(frame, 4, 17, start, start + own):
            return ("drop", "bad_l4_checksum")
        vni = int.from_bytes(udp[12:15], "big")
        return ("out", gates[vni], udp[16:own]) if vni in gates else ("drop", "unknown_vni")

    params = {"vnis": [{"vni": v, "gate": g} for v, g in gates.items()], "other_gate": 0}
    return Case("vxlan_decap", params, tunnelled() + transports() + all_sorts(54), model)
