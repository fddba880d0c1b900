# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of GTP-U as scapy has it."""

from __future__ import annotations

import copy
from typing import Any

from golden import Case, Fate, all_sorts, case, ether, wire
from mobile_world import (
    GATEWAY,
    GATEWAY6,
    GNB,
    GNB6,
    MARKS,
    PDRS,
    SERVER,
    SESSIONS,
    UE,
    marks_for,
    slot_of,
    users,
)
from scapy.contrib.gtp import (
    IE_TEIDI,
    GTP_U_Header,
    GTP_UDPPort_ExtensionHeader,
    GTPEchoResponse,
    GTPErrorIndication,
    GTPHeader,
    GTPPDUSessionContainer,
    IE_GSNAddress,
    IE_Recovery,
)
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from transports import place_of, right_sum

NONE = "00:00:00:00:00:00"


def inner(src: str = UE, **more: Any) -> Packet:
    return IP(src=src, dst=SERVER, **more) / UDP(sport=1000, dport=53) / Raw(b"up" * 9)


def outer(**ip: Any) -> Packet:
    ends = {"src": GNB, "dst": GATEWAY, **ip}
    return ether() / IP(**ends) / UDP(sport=20000, dport=2152)


def gpdu(teid: int = 0x101, load: Packet | None = None, **header: Any) -> Packet:
    return GTP_U_Header(teid=teid, gtp_type=255, **header) / (inner() if load is None else load)


def with_qfi(teid: int, qfi: int, load: Packet) -> Packet:
    return GTP_U_Header(teid=teid) / GTPPDUSessionContainer(type=1, QFI=qfi) / load


def plain(flags: int, teid: int, rest: bytes, kind: int = 255, length: int | None = None) -> Raw:
    """A message byte by byte, for what scapy would not build."""
    size = len(rest) if length is None else length
    return Raw(bytes([flags, kind]) + size.to_bytes(2, "big") + teid.to_bytes(4, "big") + rest)


def tunnelled() -> list[bytes]:
    user, other = bytes(inner()), inner("10.45.0.3")
    v6 = IPv6(src="2001:db8:45:2::9", dst="2001:db8::1") / UDP(sport=1, dport=53)
    rest = b"\0\0\0"
    extension = b"\x01\x00\x00"  # one word, without what comes next
    # What is answered at once comes first: replies leave in that order.
    packets: list[Packet] = [plain(0x34, 0x101, rest + b"\x81" + extension + b"\0" + user)]
    packets += [plain(0x34, 0x101, rest + b"\xc0" + extension + b"\x85" + b"\1\0\5\0" + user)]
    packets += [gpdu(), gpdu(0x102), gpdu(0x301, inner("1.2.3.4")), gpdu(load=v6)]
    packets += [gpdu(load=inner("10.45.0.9")), gpdu(0x201, other), gpdu(0x999), gpdu(0)]
    packets += [with_qfi(0x201, qfi, other) for qfi in (5, 6, 7)] + [with_qfi(0x101, 1, inner())]
    packets += [gpdu(S=1, seq=77), gpdu(PN=1, npdu=3), gpdu(load=inner(tos=2)), gpdu(reserved=1)]
    # Extensions: known after unknown, one that must be known, no end, too long, of no length.
    packets += [plain(0x34, 0x101, rest + b"\x20" + extension + b"\x85" + b"\1\0\5\0" + user)]
    packets += [plain(0x34, 0x101, rest + b"\x20" + (extension + b"\x20") * 30)]
    packets += [
        plain(0x34, 0x101, rest + b"\x20" + (extension + b"\x20") * 7 + extension + b"\0" + user)
    ]
    packets += [
        plain(0x34, 0x101, rest + b"\x20" + (extension + b"\x20") * 8 + extension + b"\0" + user)
    ]
    packets += [plain(0x34, 0x101, rest + b"\x85" + b"\xff\0\5\0" + user)]
    packets += [plain(0x34, 0x101, rest + b"\x85" + b"\0\0\5\0" + user)]
    packets += [
        plain(0x34, 0x101, rest + b"\x85"),
        plain(0x34, 0x101, b""),
        plain(0x32, 1, b"\0\1"),
    ]
    # Lengths, versions, other kinds of GTP.
    packets += [plain(0x30, 0x101, user, length=n) for n in (0, 3, 19, 20, len(user) - 1, 3000)]
    packets += [plain(f, 0x101, user) for f in (0x48, 0x10, 0x20, 0x50, 0x00, 0xF0, 0x38)]
    packets += [Raw(b""), Raw(b"\x30\xff"), Raw(b"\x30\xff\0\0\0\0\1")]
    packets += [gpdu(load=Raw(b"\x90" * 60)), gpdu(load=Raw(b"\x60" * 39)), gpdu(load=Raw(b""))]
    # A tunnel in the tunnel: only the outer one ends here.
    packets += [gpdu(load=IP(src=UE, dst=GATEWAY) / UDP(sport=1, dport=2152) / gpdu(0x102))]
    # The path: echoes, end markers, errors.
    echo = GTPHeader(gtp_type=1, S=1, seq=0x1234)
    packets += [echo, plain(0x30, 0, b"", 1)]
    packets += [
        plain(0x32, 0, b"\0\7\0\0" + b"\xff\0\3abc", 1),
        plain(0x32, 0, b"\0\7\0\0\x0e\0", 2),
    ]
    packets += [plain(0x30, teid, b"", 254) for teid in (0x101, 0x999, 0)]
    packets += [plain(0x32, 0, b"\0\0\0\0\x10\0\0\xa0\1\x85\0\4\xc0\0\2\2", 26)]
    packets += [plain(0x32, 0, b"\0\0\0\0\x8d\1\x85", 31), plain(0x30, 0x101, b"", 77)]
    frames = [wire(outer() / packet) for packet in packets]
    frames += [wire(outer(**ip) / gpdu()) for ip in ({"tos": 3}, {"flags": "MF"}, {"frag": 4})]
    frames += [wire(outer(tos=3) / gpdu(load=inner(tos=1))), wire(outer(src="0.0.0.0") / gpdu(9))]
    frames += [wire(outer(src=src) / echo) for src in ("127.0.0.1", "224.0.0.1", GNB)]
    frames += [wire(ether() / IP(src=GNB, dst=GATEWAY) / TCP(dport=2152))]
    udps: list[dict[str, Any]] = [{"chksum": 0}, {"chksum": 0x1234}, {"len": 7}, {"len": 900}]
    for udp in [*udps, {"len": 16, "chksum": 0}, {"dport": 2123}]:
        ports = {"sport": 20000, "dport": 2152, **udp}
        frames.append(wire(ether() / IP(src=GNB, dst=GATEWAY) / UDP(**ports) / gpdu()))
    ends6 = {"src": "2001:db8::2", "dst": "2001:db8::1"}
    for packet in (gpdu(), gpdu(0x999), GTPHeader(gtp_type=1, S=1, seq=3)):
        for udp in ({}, {"chksum": 0}, {"chksum": 0x1234}):
            ports = {"sport": 20000, "dport": 2152, **udp}
            frames.append(wire(ether() / IPv6(**ends6) / UDP(**ports) / packet))
    other6 = {**ends6, "dst": "2001:db8::9", "tc": 0xB8}
    frames.append(wire(ether() / IPv6(**other6) / UDP(sport=20000, dport=2152) / gpdu()))
    whole = frames[2]
    return frames + [whole[:n] for n in range(30, len(whole), 4)]


def is_v6(frame: bytes) -> bool:
    return frame[12:14] == b"\x86\xdd"


def ends_here(frame: bytes) -> Packet:
    """What a reply has in front: the frame's ends exchanged."""
    packet = Ether(frame)
    macs = {"dst": packet.src, "src": packet.dst}
    if is_v6(frame):
        return Ether(**macs) / IPv6(src=packet[IPv6].dst, dst=packet[IPv6].src, hlim=64)
    return Ether(**macs) / IP(src=packet[IP].dst, dst=packet[IP].src, ttl=64, id=0, flags="DF")


def may_answer(frame: bytes) -> bool:
    return is_v6(frame) or frame[26] not in (0, 127, 224)


def echo_response(frame: bytes, sequence: int) -> bytes:
    port = Ether(frame)[UDP].sport
    answer = GTPHeader(gtp_type=2, S=1, seq=sequence, teid=0)
    answer = answer / GTPEchoResponse(IE_list=[IE_Recovery(restart_counter=0)])
    return bytes(ends_here(frame) / UDP(sport=2152, dport=port) / answer)


def error_indication(frame: bytes, teid: int) -> bytes:
    packet = Ether(frame)
    header = GTP_U_Header(gtp_type=26, teid=0, E=1, S=1, seq=0, next_ex=0x40)
    port = GTP_UDPPort_ExtensionHeader(length=1, udp_port=packet[UDP].sport, next_ex=0)
    if is_v6(frame):
        address = IE_GSNAddress(length=16, ipv6_address=packet[IPv6].dst)
    else:
        address = IE_GSNAddress(length=4, ipv4_address=packet[IP].dst)
    errors = GTPErrorIndication(IE_list=[IE_TEIDI(TEIDI=teid), address])
    body = bytes(port) + bytes(errors)
    raw = bytes(header)[:12]
    raw = raw[:2] + (len(raw) - 8 + len(body)).to_bytes(2, "big") + raw[4:]
    return bytes(ends_here(frame) / UDP(sport=2152, dport=2152) / Raw(raw + body))


def supported_extensions(frame: bytes) -> bytes:
    # TS 29.281, 8.5 has one byte of length, where scapy writes two.
    note = GTPHeader(gtp_type=31, teid=0, S=1, seq=0) / Raw(b"\x8d\x01\x85")
    return bytes(ends_here(frame) / UDP(sport=2152, dport=2152) / note)


def chain_of(gtp: bytes) -> tuple[int, int, int] | None:
    """Where a message's content begins, its QFI (or -1), and an extension not known (or 0)."""
    start, qfi, unknown = 8, -1, 0
    if gtp[0] & 7:
        start = 12
        if len(gtp) < start:
            return None
        kind = gtp[11] if gtp[0] & 4 else 0
        for n in range(100):
            if kind == 0:
                break
            size = 4 * gtp[start] if start + 4 <= len(gtp) else 0
            if n == 8 or size == 0 or start + size > len(gtp):
                return None
            if kind == 0x85:
                qfi = gtp[start + 2] & 63
            elif kind & 0x80:
                unknown = kind
            start += size
            kind = gtp[start - 1]
    return start, qfi, unknown


def uplink_pdr(teid: int, qfi: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
    found = [(s, p) for s, p in PDRS if p.get("teid") == teid and p.get("qfi", qfi) == qfi]
    return min(found, key=lambda pair: pair[1].get("precedence", 255), default=None)


def source_fits(session: dict[str, Any], packet: bytes) -> bool:
    if "ue" not in session:
        return True
    if packet[0] >> 4 == 4:
        return bool(IP(packet).src == session["ue"])
    if "ue6" not in session:
        return False
    return packet[8:16] == bytes(IPv6(src=session["ue6"].split("/")[0]))[8:16]


def congested(packet: bytes, mark: int) -> bytes | None:
    """RFC 6040 on the way out; these inner packets are IPv4, or were not marked."""
    if mark == 0 or packet[0] >> 4 != 4 or packet[1] & 3 == mark or mark == 2:
        return packet
    if mark == 3 and packet[1] & 3 == 0:
        return None
    if mark == 1 and packet[1] & 3 != 2:
        return packet
    ip = IP(packet)
    ip.tos = ip.tos & 0xFC | mark
    del ip.chksum
    return bytes(ip)


def decap_model(local6: str = "") -> Any:
    known = {p["teid"] for _, p in PDRS if "teid" in p}

    def is_for_others(frame: bytes, version: int) -> bool:
        if not local6:
            return False
        return version == 4 or bool(Ether(frame)[IPv6].dst != local6)

    def model(frame: bytes) -> Fate | list[Fate]:
        kind, version, proto, start, end = place_of(frame)
        if kind not in ("whole", "fragment", "other", "bad_version"):
            return ("drop", kind)
        udp = frame[14 + start : 14 + end]
        port = int.from_bytes(udp[2:4], "big")
        if kind != "whole" or proto != 17 or len(udp) < 8 or port != 2152:
            return ("out", 2, frame)
        if is_for_others(frame, version):
            return ("out", 2, frame)
        own = int.from_bytes(udp[4:6], "big")
        if not 16 <= own <= len(udp):
            return ("drop", "bad_gtpu")
        gtp = udp[8:own]
        if gtp[0] >> 4 != 3:
            return ("drop", "gtpu_version")
        size = 8 + int.from_bytes(gtp[2:4], "big")
        chain = chain_of(gtp[:size]) if size <= len(gtp) else None
        if chain is None:
            return ("drop", "bad_gtpu")
        given = int.from_bytes(udp[6:8], "big")
        is_summed = given != 0 or version == 6
        if is_summed and given != right_sum(frame, version, 17, start, start + own):
            return ("drop", "bad_l4_checksum")
        content, qfi, unknown = chain
        teid = int.from_bytes(gtp[4:8], "big")
        if unknown:
            drop: Fate = ("drop", "gtpu_extension")
            return [("emit", 1, supported_extensions(frame)), drop]
        if gtp[1] == 1:
            if not may_answer(frame):
                return ("drop", "bad_gtpu")
            sequence = int.from_bytes(gtp[8:10], "big") if gtp[0] & 7 else 0
            return ("out", 1, echo_response(frame, sequence))
        if gtp[1] == 254 and teid not in known:
            return ("drop", "unknown_teid")
        if gtp[1] != 255:
            return ("out", 3, frame)
        if teid not in known:
            drop = ("drop", "unknown_teid")
            tells = teid != 0 and may_answer(frame)
            return [("emit", 1, error_indication(frame, teid)), drop] if tells else drop
        packet = gtp[content:size]
        least = {4: 20, 6: 40}.get(packet[0] >> 4 if packet else 0, 10**6)
        if len(packet) < least:
            return ("drop", "gtpu_inner")
        pair = uplink_pdr(teid, qfi)
        if pair is None:
            return ("drop", "no_pdr")
        if not source_fits(pair[0], packet):
            return ("drop", "ue_source")
        tos = frame[15] if version == 4 else int.from_bytes(frame[14:16], "big") >> 4
        marked = congested(packet, tos & 3)
        if marked is None:
            return ("drop", "ecn_mismatch")
        is_v4 = packet[0] >> 4 == 4
        kind_bytes = b"\x08\x00" if is_v4 else b"\x86\xdd"
        return ("out", 0 if is_v4 else 4, frame[:12] + kind_bytes + marked)

    return model


@case("gtpu_decap")
def gtpu_decap() -> Case:
    frames = tunnelled() + all_sorts(61)
    params = {"sessions": SESSIONS}
    return Case("gtpu_decap", params, frames, decap_model(), {"connected_gates": 5})


@case("gtpu_decap", "local6")
def gtpu_decap_local6() -> Case:
    """Tunnels end at one IPv6 address; what goes to others is left alone."""
    frames = tunnelled() + all_sorts(66)
    params = {"sessions": SESSIONS, "local6": GATEWAY6}
    return Case("gtpu_decap", params, frames, decap_model(GATEWAY6), {"connected_gates": 5})


def encap_model(sequence: bool, sessions: list[dict[str, Any]] = SESSIONS) -> Any:
    pdrs = [(s, p) for s in sessions for p in s["pdrs"]]
    numbers = iter(range(1 << 16))

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        slot = slot_of(meta)
        if slot is None:
            return ("drop", "session_gone")
        session, pdr = pdrs[slot]
        far = next(far for far in session["fars"] if far["id"] == pdr["far"])
        if "teid" not in far:
            return ("drop", "no_tunnel")
        if len(frame) < 34:
            return ("drop", "too_short")
        packet = frame[14:]
        if packet[0] >> 4 == 4:
            size, tos = int.from_bytes(packet[2:4], "big"), packet[1]
        elif packet[0] >> 4 == 6:
            size = 40 + int.from_bytes(packet[4:6], "big")
            tos = int.from_bytes(packet[:2], "big") >> 4 & 255
        else:
            return ("drop", "bad_version")
        if not 20 <= size <= len(packet):
            return ("drop", "bad_total_length")
        number = {"S": 1, "seq": next(numbers)} if sequence else {}
        header = GTP_U_Header(teid=far["teid"], gtp_type=255, **number)
        if pdr.get("qers"):
            header = header / GTPPDUSessionContainer(type=0, QFI=9)
        macs = Ether(dst=NONE, src="02:00:00:00:00:0c" if sequence else NONE)
        if ":" in far["peer"]:
            ends = IPv6(src=GATEWAY6, dst=far["peer"], tc=tos, hlim=64)
            udp = UDP(sport=2152, dport=2152)
        else:
            ends = IP(src=GATEWAY, dst=far["peer"], tos=tos, ttl=64, id=0, flags="DF")
            udp = UDP(sport=2152, dport=2152, chksum=0)
        return ("out", 0, bytes(macs / ends / udp / header / Raw(packet[:size])))

    return model


@case("gtpu_encap")
def gtpu_encap() -> Case:
    frames = users() + all_sorts(65)
    params = {"sessions": SESSIONS, "local": GATEWAY}
    return Case("gtpu_encap", params, frames, encap_model(False), {}, marks_for(frames))


@case("gtpu_encap", "sequence")
def gtpu_encap_sequence() -> Case:
    frames = users() + all_sorts(66)
    params = {
        "sessions": SESSIONS, "local": GATEWAY, "sequence": True, "src_mac": "02:00:00:00:00:0c"
    }  # fmt: skip
    return Case("gtpu_encap", params, frames, encap_model(True), {}, marks_for(frames))


def over_ipv6() -> list[dict[str, Any]]:
    """User 1 on a base station with an IPv6 address, but for his second bearer."""
    sessions = copy.deepcopy(SESSIONS)
    for far in sessions[0]["fars"]:
        if far.get("peer") == GNB:
            far["peer"] = GNB6
    return sessions


@case("gtpu_encap", "ipv6")
def gtpu_encap_ipv6() -> Case:
    """The checksum takes in all that the tunnel carries, of any length; 0 is sent as 0xffff."""
    sessions = over_ipv6()
    lengths = [IP(src=SERVER, dst=UE) / UDP() / Raw(bytes(range(n))) for n in range(24)]
    frames = users() + all_sorts(67) + [wire(ether() / packet) for packet in lengths]
    frames += [wire(ether() / zero_sum_packet())]
    params = {"sessions": sessions, "local": GATEWAY, "local6": GATEWAY6}
    metas = marks_for(frames[: -len(lengths) - 1]) + [{"mark": MARKS[1]}] * (len(lengths) + 1)
    return Case("gtpu_encap", params, frames, encap_model(False, sessions), {}, metas)


def zero_sum_packet() -> Packet:
    """One that makes the outer sum 0: two bytes of it are what was missing."""
    header = GTP_U_Header(teid=0xA001, gtp_type=255) / GTPPDUSessionContainer(type=0, QFI=9)
    packet = IP(src=SERVER, dst=UE, id=0) / UDP() / Raw(b"\0\0")
    carried = bytes(packet)
    ends = IPv6(src=GATEWAY6, dst=GNB6, hlim=64)
    whole = bytes(ends / UDP(sport=2152, dport=2152) / header / Raw(carried))
    missing = whole[46:48]
    return Raw(carried[:-2] + missing)
