# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of modules that look into IPv4 headers."""

from __future__ import annotations

from golden import Case, Fate, all_sorts, case, ether, good_ipv4, wire
from scapy.layers.inet import (
    IP,
    UDP,
    IPOption_LSRR,
    IPOption_NOP,
    IPOption_RR,
    IPOption_SSRR,
)
from scapy.packet import Raw
from scapy.utils import checksum


def with_byte(frame: bytes, at: int, value: int) -> bytes:
    return frame[:at] + bytes([value]) + frame[at + 1 :]


def with_right_sum(frame: bytes) -> bytes:
    """The header checksum by scapy's own sum, over the length that the header claims."""
    end = 14 + (frame[14] & 15) * 4
    zeroed = frame[:24] + b"\0\0" + frame[26:]
    return frame[:24] + checksum(zeroed[14:end]).to_bytes(2, "big") + frame[26:]


def faulty_ipv4() -> list[bytes]:
    good = wire(ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / Raw(b"z" * 30))
    frames = [with_byte(good, 14, b) for b in (0x65, 0x05, 0x44, 0x40, 0x4F, 0x46)]
    frames += [with_right_sum(with_byte(good, 17, n)) for n in (0, 19, 20, 58, 59, 255)]
    frames += [with_byte(good, at, good[at] ^ 1) for at in range(15, 34)]
    martians = ("0.0.0.0", "127.0.0.1", "224.0.0.5", "240.1.1.1", "255.255.255.255")
    for src in (*martians, "126.0.0.1", "223.0.0.1"):
        frames.append(wire(ether() / IP(src=src, dst="10.0.0.2") / UDP()))
    for dst in ("0.1.2.3", "127.0.0.1", "224.0.0.5", "255.255.255.255"):
        frames.append(wire(ether() / IP(src="10.0.0.1", dst=dst) / UDP()))
    return frames


def header_fault(frame: bytes) -> str:
    """The faults that every IPv4 module names alike; empty when there is none."""
    if len(frame) < 34:
        return "too_short"
    header_bytes = (frame[14] & 15) * 4
    if frame[14] >> 4 != 4:
        return "bad_version"
    if header_bytes < 20 or header_bytes > len(frame) - 14:
        return "bad_header_length"
    return ""


def is_sum_right(frame: bytes) -> bool:
    return checksum(frame[14 : 14 + (frame[14] & 15) * 4]) == 0


def option_fault(options: bytes) -> str:
    while options and options[0] != 0:
        if options[0] in (131, 137):
            return "source_route"
        if options[0] == 1:
            options = options[1:]
        elif len(options) < 2 or not 2 <= options[1] <= len(options):
            return "bad_option"
        else:
            options = options[options[1] :]
    return ""


def source_routed() -> list[bytes]:
    routed = []
    for options in (
        [IPOption_LSRR(routers=["10.0.0.9"])],
        [IPOption_SSRR(routers=["10.0.0.9"])],
        [IPOption_NOP(), IPOption_RR(routers=["131.137.131.137"])],
    ):
        ip = IP(src="10.0.0.1", dst="10.0.0.2", options=options)
        routed.append(wire(ether() / ip / UDP()))
    return routed


def badly_optioned() -> list[bytes]:
    """Lengths of 0, of 1, beyond the header and missing; a source route behind each."""
    frames = []
    for options in (
        "4400830304000000",
        "4401830304000000",
        "4409830304000000",
        "0101010101010144",
        "4404830300890304",
    ):
        ip = IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption_NOP()] * 8)
        frame = bytearray(wire(ether() / ip / UDP()))
        frame[34:42] = bytes.fromhex(options)
        frame[24:26] = bytes(2)
        frame[24:26] = checksum(bytes(frame[14:42])).to_bytes(2, "big")
        frames.append(bytes(frame))
    return frames


@case("ipv4_check")
def ipv4_check() -> Case:
    def model(frame: bytes) -> Fate:
        fault = header_fault(frame)
        if fault:
            return ("drop", fault)
        total = int.from_bytes(frame[16:18], "big")
        if total < (frame[14] & 15) * 4 or total > len(frame) - 14:
            return ("drop", "bad_total_length")
        if not is_sum_right(frame):
            return ("drop", "bad_checksum")
        fault = option_fault(frame[34 : 14 + (frame[14] & 15) * 4])
        if fault:
            return ("drop", fault)
        if frame[26] in (0, 127) or frame[26] >= 224:
            return ("drop", "martian_source")
        if frame[30] in (0, 127):
            return ("drop", "martian_destination")
        return ("out", 0, frame)

    return Case(
        "ipv4_check", {}, all_sorts() + faulty_ipv4() + source_routed() + badly_optioned(), model
    )


@case("checksum")
def checksum_full() -> Case:
    def model(frame: bytes) -> Fate:
        fault = header_fault(frame)
        return ("drop", fault) if fault else ("out", 0, with_right_sum(frame))

    return Case("checksum", {"mode": "full"}, all_sorts() + faulty_ipv4(), model)


@case("checksum", "check")
def checksum_check() -> Case:
    def model(frame: bytes) -> Fate:
        fault = header_fault(frame) or ("" if is_sum_right(frame) else "bad_checksum")
        return ("drop", fault) if fault else ("out", 0, frame)

    return Case("checksum", {"mode": "check"}, all_sorts() + faulty_ipv4(), model)


@case("checksum", "incremental")
def checksum_incremental() -> Case:
    lowered = [with_byte(frame, 22, frame[22] - 2) for frame in good_ipv4()]
    return Case(
        "checksum",
        {"mode": "incremental", "ttl_steps": 2},
        lowered,
        lambda frame: ("out", 0, with_right_sum(frame)),
    )
