# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of what cuts packets and puts them together."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from golden import Case, Fate, case, ether
from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw


def payload(n: int) -> bytes:
    return bytes((i * 7 + i // 256) % 256 for i in range(n))


def whole(n: int, **more: Any) -> bytes:
    return bytes(ether() / IP(src="10.0.0.1", dst="10.0.0.2", **more) / UDP() / Raw(payload(n)))


@case("fragment")
def fragment_case() -> Case:
    def model(frame: bytes) -> Fate | list[Fate]:
        if len(frame) < 34:
            return ("drop", "too_short")
        packet = Ether(frame)
        if packet[IP].len <= 576 or packet[IP].flags & 2:
            return ("out", 0, frame)
        parts = fragment(packet, fragsize=552)
        fates: list[Fate] = [("emit", 0, bytes(part)) for part in parts[:-1]]
        return [*fates, ("out", 0, bytes(parts[-1]))]

    sizes = (10, 547, 548, 549, 1000, 1096, 1097, 1472)
    frames = [whole(n, id=n) for n in sizes] + [whole(1472, flags="DF"), whole(10)[:33], b""]
    frames.append(bytes(ether() / IP(dst="10.0.0.2", src="10.0.0.1") / ICMP() / Raw(payload(900))))
    return Case("fragment", {"mtu_bytes": 576}, frames, model)


@case("reassembly")
def reassembly_case() -> Case:
    """Cut by scapy, out of order and mixed; one packet stays incomplete."""
    seen: dict[int, set[int]] = defaultdict(set)
    originals = {n: whole(n, id=n) for n in (600, 900, 1400)}
    parts = {n: [bytes(p) for p in fragment(Ether(f), fragsize=400)] for n, f in originals.items()}

    def model(frame: bytes) -> Fate | list[Fate]:
        if len(frame) < 34:
            return ("drop", "too_short")
        ip = Ether(frame)[IP]
        if not ip.flags & 1 and not ip.frag:
            return ("out", 0, frame)
        seen[ip.id].add(ip.frag)
        if len(seen[ip.id]) < len(parts[ip.id]):
            return ("keep",)
        if ip.frag == 0:  # the rest is in there now
            others = [("drop", "reassembled")] * (len(parts[ip.id]) - 1)
            return [*others, ("out", 0, originals[ip.id])]
        return [
            ("emit", 0, originals[ip.id]),
            *[("drop", "reassembled")] * (len(parts[ip.id]) - 1),
        ]

    frames = [parts[600][1], parts[900][2], whole(20), parts[1400][3], parts[600][0]]
    frames += [parts[900][0], parts[900][1], parts[1400][0], b"short", parts[1400][1]]
    # As the test counts: three of the incomplete packet, and the one that left as a whole packet.
    return Case("reassembly", {}, frames, model, {"kept_pkts": 4})
