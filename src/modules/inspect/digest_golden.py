# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of digest; Python's hashlib takes the digests."""

from __future__ import annotations

import hashlib

from dpi_golden import payload_of
from golden import Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Raw
from transports import transports


def some_frames() -> list[bytes]:
    """Payloads of every length around the ends of blocks, and long ones."""
    ip = IP(src="10.0.0.1", dst="10.0.0.2")
    sizes = [*range(70), *range(115, 135), 500, 1000, 1400]
    frames = [
        wire(ether() / ip / (TCP() if n % 2 else UDP()) / Raw(bytes(i % 251 for i in range(n))))
        for n in sizes
    ]
    return (frames + transports() + all_sorts(63))[:256]


def case_of(algorithm: str) -> Case:
    frames = some_frames()

    def digest_of(frame: bytes) -> str:
        return hashlib.new(algorithm, payload_of(frame)[1]).hexdigest()

    gates = {digest_of(frame): 1 + i % 3 for i, frame in enumerate(frames) if i % 4 == 1}

    def model(frame: bytes) -> Fate:
        return ("out", gates.get(digest_of(frame), 0), frame)

    rules = [{"digest": digest, "gate": gate} for digest, gate in gates.items()]
    params = {"algorithm": algorithm, "rules": rules}
    return Case("digest", params, frames, model, {"connected_gates": 4})


@case("digest")
def digest() -> Case:
    return case_of("sha256")


@case("digest", variant="sha1")
def digest_sha1() -> Case:
    return case_of("sha1")


@case("digest", variant="md5")
def digest_md5() -> Case:
    return case_of("md5")
