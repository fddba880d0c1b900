# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of transport checksums; scapy makes the sums."""

from __future__ import annotations

from golden import Case, all_sorts, case
from transports import sum_model, transports


def flipped(frames: list[bytes]) -> list[bytes]:
    """Each frame with one bit of its last byte but a few, or of its header, turned."""
    out = []
    for i, frame in enumerate(frames):
        at = (36, 50, 55)[i % 3]
        out.append(frame[:at] + bytes([frame[at] ^ 4]) + frame[at + 1 :])
    return out


@case("l4_checksum")
def l4_checksum() -> Case:
    frames = transports()
    return Case("l4_checksum", {}, frames + flipped(frames) + all_sorts(51), sum_model(False))


@case("l4_checksum", "update")
def l4_checksum_update() -> Case:
    frames = transports()
    params = {"mode": "update"}
    return Case("l4_checksum", params, frames + flipped(frames) + all_sorts(52), sum_model(True))
