# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of DSCP modules."""

from __future__ import annotations

from golden import Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (
    IPv6,
)


def set_dscp(frame: bytes, dscp: int) -> bytes:
    """The frame with another DSCP; the IPv4 checksum loses what the first word gains."""
    data = bytearray(frame)
    before = int.from_bytes(data[14:16], "big")
    if frame[12:14] == b"\x86\xdd":
        data[14:16] = ((before & ~(63 << 6)) | dscp << 6).to_bytes(2, "big")
        return bytes(data)
    after = (before & ~(63 << 2)) | dscp << 2
    data[14:16] = after.to_bytes(2, "big")
    total = (~int.from_bytes(data[24:26], "big") & 0xFFFF) + (~before & 0xFFFF) + after
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    data[24:26] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(data)


def dscp_of(frame: bytes) -> int | None:
    """None = no IP; -1 = too short."""
    if len(frame) <= 14:
        return -1
    for kind, version, least, shift in ((b"\x08\x00", 4, 34, 2), (b"\x86\xdd", 6, 54, 6)):
        if frame[12:14] == kind and frame[14] >> 4 == version:
            if len(frame) < least:
                return -1
            return int.from_bytes(frame[14:16], "big") >> shift & 63
    return None


def marked_frames() -> list[bytes]:
    values = (0, 8, 10, 12, 14, 34, 46, 63)
    frames = [
        wire(ether() / IP(src="10.0.0.1", dst="10.0.0.2", tos=v << 2 | 1) / UDP()) for v in values
    ]
    return frames + [
        wire(ether() / IPv6(src="fd00::1", dst="fd00::2", tc=v << 2 | 2) / UDP()) for v in values
    ]


@case("dscp")
def dscp() -> Case:
    def model(frame: bytes) -> Fate:
        found = dscp_of(frame)
        if found == -1:
            return ("drop", "too_short")
        if found is None:
            return ("out", 0, frame)
        new = {46: 40, 0: 0}.get(found, 10)
        return ("out", 0, frame if new == found else set_dscp(frame, new))

    params = {"to": "af11", "map": [{"from": "ef", "to": "cs5"}, {"from": 0, "to": "be"}]}
    return Case("dscp", params, all_sorts(5) + marked_frames(), model)


@case("dscp_split")
def dscp_split() -> Case:
    gates = {0: 0, 46: 2, 34: 1}

    def model(frame: bytes) -> Fate:
        found = dscp_of(frame)
        if found == -1:
            return ("drop", "too_short")
        gate = gates.get(found, -1) if found is not None else -1
        return ("drop", "no_match") if gate < 0 else ("out", gate, frame)

    rules = [{"dscp": value, "gate": gate} for value, gate in gates.items()]
    return Case("dscp_split", {"rules": rules}, all_sorts(6) + marked_frames(), model)
