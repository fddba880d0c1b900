# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of ttl."""

from __future__ import annotations

from golden import Case, Fate, case, ether, good_ipv4, truncated, wire
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


@case("ttl")
def ttl() -> Case:
    ips = [IP(src="10.0.0.1", dst="10.0.0.2", ttl=t) for t in (0, 1, 2, 255)]
    ending = [wire(ether() / ip / UDP()) for ip in ips]

    def model(frame: bytes) -> Fate:
        if len(frame) < 34:
            return ("drop", "too_short")
        if frame[22] <= 1:
            return ("drop", "ttl_expired")
        packet = Ether(frame)
        packet[IP].ttl -= 1
        del packet[IP].chksum
        return ("out", 0, bytes(packet))

    short = [frame for frame in truncated() if len(frame) < 34]
    return Case("ttl", {}, good_ipv4() + ending + short, model)
