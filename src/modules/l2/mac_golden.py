# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of modules that look at the Ethernet header."""

from __future__ import annotations

from golden import DST, SRC, Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import mac2str


@case("mac_rewrite")
def mac_rewrite() -> Case:
    dst, src = "0a:00:00:00:00:0a", "0b:00:00:00:00:0b"

    def model(frame: bytes) -> Fate:
        if len(frame) < 14:
            return ("drop", "too_short")
        return ("out", 0, mac2str(dst) + mac2str(src) + frame[12:])

    return Case("mac_rewrite", {"dst": dst, "src": src}, all_sorts(), model)


@case("mac_rewrite", "src_only")
def mac_rewrite_src() -> Case:
    src = "0b:00:00:00:00:0b"

    def model(frame: bytes) -> Fate:
        if len(frame) < 14:
            return ("drop", "too_short")
        packet = Ether(frame)
        packet.src = src
        return ("out", 0, bytes(packet)[:14] + frame[14:])

    return Case("mac_rewrite", {"src": src}, all_sorts(2), model)


@case("l2_table")
def l2_table() -> Case:
    gates = {DST: 2, "ff:ff:ff:ff:ff:ff": 0, "02:00:00:00:00:77": 1}
    entries = [{"mac": mac, "gate": gate} for mac, gate in gates.items()]
    ip = IP(src="10.0.0.1", dst="10.0.0.2")
    known, unknown = "02:00:00:00:00:77", "02:00:00:00:00:78"
    more = [wire(ether(dst) / ip / UDP()) for dst in (known, unknown, SRC)]

    def model(frame: bytes) -> Fate:
        if len(frame) < 14:
            return ("drop", "too_short")
        gate = gates.get(Ether(frame).dst)
        return ("drop", "unknown_mac") if gate is None else ("out", gate, frame)

    return Case("l2_table", {"entries": entries}, all_sorts() + more, model)


@case("ether_type")
def ether_type() -> Case:
    rules = [("ipv4", 0x0800, 1), ("arp", 0x0806, 0), ("0x86dd", 0x86DD, 1), (0x8100, 0x8100, 3)]
    gates = {number: gate for _, number, gate in rules}

    def model(frame: bytes) -> Fate:
        if len(frame) < 14:
            return ("drop", "too_short")
        gate = gates.get(int.from_bytes(frame[12:14], "big"))
        return ("drop", "no_match") if gate is None else ("out", gate, frame)

    params = {"rules": [{"ether_type": name, "gate": gate} for name, _, gate in rules]}
    return Case("ether_type", params, all_sorts(), model)
