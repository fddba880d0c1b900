# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of VXLAN; scapy makes the sums."""

from __future__ import annotations

from typing import Any

from golden import Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw
from transports import place_of, right_sum, transports

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
