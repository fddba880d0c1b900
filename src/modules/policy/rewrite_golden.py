# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of rewrite; scapy makes the sums."""

from __future__ import annotations

from golden import Case, Fate, case, ether, good_ipv4, wire
from scapy.layers.inet import IP
from scapy.packet import Raw
from scapy.utils import checksum
from transports import SUM_AT, place_of, right_sum, sum_model, transports


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
