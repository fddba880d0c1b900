# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of the neighbour module: ARP, waiting packets, Ethernet headers."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

from golden import Case, Fate, case, ether, truncated, wire
from router_world import COMPANION, INTERFACES, LAN, LAN_MAC, NEXT_HOPS, WAN, Meta, own, to
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

STATICS = {(LAN, "10.0.0.5"): "02:00:00:00:00:05", (WAN, "192.168.1.1"): "02:00:00:00:01:01"}


class Neighbours:
    """ARP as RFC 826 has it, with a bounded number of waiting packets."""

    def __init__(self, hold: int, hold_in_total: int, max_unresolved: int) -> None:
        self.macs: dict[tuple[int, str], str] = dict(STATICS)
        self.waiting: dict[tuple[int, str], list[bytes]] = {}
        self.hold = hold
        self.hold_in_total = hold_in_total
        self.max_unresolved = max_unresolved

    def __call__(self, frame: bytes, meta: Meta) -> Fate | list[Fate]:
        l3 = meta.get("l3_offset_bytes", 14)
        if len(frame) >= l3 and frame[l3 - 2 : l3] == b"\x08\x06":
            return self.arp(frame, meta.get("in_interface"), l3)
        return self.forward(frame, meta, l3)

    @staticmethod
    def framed(interface: int, mac: str, packet: bytes) -> bytes:
        return bytes(Ether(dst=mac, src=INTERFACES[interface]["mac"], type=0x0800)) + packet

    def forward(self, frame: bytes, meta: Meta, l3: int) -> Fate | list[Fate]:
        if len(frame) < l3 + 20:
            return ("drop", "too_short")
        hop = next((h for h in NEXT_HOPS if h["id"] == meta["next_hop"]), {})
        if "interface" not in hop:
            return ("drop", "no_interface")
        interface = [i["name"] for i in INTERFACES].index(hop["interface"])
        packet = frame[l3:]
        if int.from_bytes(packet[2:4], "big") > INTERFACES[interface]["mtu_bytes"]:
            return ("drop", "mtu_exceeded")
        if "mac" in hop:
            return ("out", interface, self.framed(interface, hop["mac"], packet))
        key = (interface, hop.get("via") or str(IPv4Address(packet[16:20])))
        if key in self.macs:
            return ("out", interface, self.framed(interface, self.macs[key], packet))
        return self.wait(key, packet)

    def wait(self, key: tuple[int, str], packet: bytes) -> Fate | list[Fate]:
        if int(IPv4Address(key[1])) >= int(IPv4Address("224.0.0.0")):
            return ("drop", "neighbour_unreachable")
        fates: list[Fate] = []
        if key not in self.waiting:
            if len(self.waiting) >= self.max_unresolved:
                return ("drop", "neighbour_table_full")
            self.waiting[key] = []
            fates.append(("emit", key[0], self.request(*key)))
        n_total = sum(len(packets) for packets in self.waiting.values())
        if len(self.waiting[key]) >= self.hold or n_total >= self.hold_in_total:
            return [*fates, ("drop", "neighbour_hold_full")]
        self.waiting[key].append(packet)
        return [*fates, ("keep",)]

    @staticmethod
    def request(interface: int, wanted: str) -> bytes:
        mac = INTERFACES[interface]["mac"]
        sources = [a for a in own(interface) if IPv4Address(wanted) in a.network] or own(interface)
        question = ARP(
            op=1, hwsrc=mac, psrc=str(sources[0].ip), hwdst="00:00:00:00:00:00", pdst=wanted
        )
        return wire(Ether(dst="ff:ff:ff:ff:ff:ff", src=mac) / question)

    def arp(self, frame: bytes, interface: int | None, l3: int) -> Fate | list[Fate]:
        if interface is None:
            return ("drop", "no_interface")
        is_ipv4_over_ethernet = frame[l3 : l3 + 6] == b"\0\1\x08\0\6\4"
        if len(frame) < l3 + 28 or not is_ipv4_over_ethernet:
            return ("drop", "arp_malformed")
        heard = ARP(frame[l3 : l3 + 28])
        if heard.op not in (1, 2):
            return ("drop", "arp_malformed")
        if heard.hwsrc == "00:00:00:00:00:00" or int(heard.hwsrc[:2], 16) & 1:
            return ("drop", "arp_malformed")
        mac = INTERFACES[interface]["mac"]
        addresses = [str(a.ip) for a in own(interface)]
        if heard.psrc in addresses:
            return ("drop", "arp_done" if heard.hwsrc == mac else "arp_conflict")
        is_question = heard.op == 1 and heard.pdst in addresses
        fates = self.learn(interface, heard.psrc, heard.hwsrc, is_question)
        if not is_question:
            return [*fates, ("drop", "arp_done")]
        reply = Ether(dst=heard.hwsrc, src=mac) / ARP(
            op=2, hwsrc=mac, psrc=heard.pdst, hwdst=heard.hwsrc, pdst=heard.psrc
        )
        return [*fates, ("out", interface, bytes(reply) + frame[l3 + 28 :])]

    def learn(self, interface: int, address: str, mac: str, may_add: bool) -> list[Fate]:
        key = (interface, address)
        is_on_link = any(IPv4Address(address) in a.network for a in own(interface))
        is_known = key in self.waiting or key in self.macs
        if key in STATICS or address == "0.0.0.0" or not (is_known or (may_add and is_on_link)):
            return []
        self.macs[key] = mac
        return [
            ("emit", interface, self.framed(interface, mac, packet))
            for packet in self.waiting.pop(key, [])
        ]


def arp(op: int, mac: str, src: str, dst: str, **more: Any) -> bytes:
    return wire(ether("ff:ff:ff:ff:ff:ff", mac) / ARP(op=op, hwsrc=mac, psrc=src, pdst=dst, **more))


def host(n: int) -> str:
    return f"02:00:00:00:ff:{n:02x}"


def forwarded_traffic() -> Iterator[tuple[bytes, Meta]]:
    for i in range(3):
        yield to("10.0.0.5", id=i), {"next_hop": 1}
        yield to("8.8.8.8", id=i), {"next_hop": 2}
        yield to("7.7.7.7", id=i), {"next_hop": 3}
    long = wire(ether() / IP(src="10.0.0.5", dst="8.8.8.8") / UDP() / Raw(b"m" * 572))
    yield long, {"next_hop": 2}
    yield (
        wire(ether() / IP(src="10.0.0.5", dst="8.8.8.8") / UDP() / Raw(b"m" * 573)),
        {"next_hop": 2},
    )
    yield (
        wire(ether() / IP(src="1.1.1.1", dst="10.0.0.5") / UDP() / Raw(b"m" * 573)),
        {"next_hop": 1},
    )
    tagged = wire(ether() / Dot1Q(vlan=3) / IP(src="10.0.0.5", dst="8.8.8.8") / UDP())
    yield tagged, {"next_hop": 2, "l3_offset_bytes": 18}
    for hop in (4, 5, 77):
        yield to("10.0.0.5"), {"next_hop": hop}
    yield to("224.0.0.5"), {"next_hop": 1}
    for frame in truncated():
        yield frame, {"next_hop": 1}


def arp_traffic() -> Iterator[tuple[bytes, Meta]]:
    lan, wan = {"next_hop": 1, "in_interface": LAN}, {"next_hop": 1, "in_interface": WAN}
    yield arp(1, host(20), "10.0.0.20", "10.0.0.1"), lan
    yield to("10.0.0.20"), lan  # learnt from its question
    yield arp(2, host(21), "10.0.0.20", "10.0.0.1"), lan  # moved to another card
    yield to("10.0.0.20"), lan
    for i in range(5):
        yield to("10.0.0.77", id=i), lan
    yield to("10.0.0.78"), lan
    yield arp(2, host(77), "10.0.0.77", "10.0.0.1"), lan
    yield to("10.0.0.77", id=9), lan
    yield arp(2, host(30), "10.0.0.30", "10.0.0.1"), lan  # nobody asked
    yield to("10.0.0.30"), lan
    yield arp(2, host(5), "10.0.0.5", "10.0.0.1"), lan  # static: stays
    yield to("10.0.0.5"), lan
    yield arp(1, host(40), "10.0.0.40", "10.0.0.41"), lan  # not for us
    yield arp(1, host(40), "10.0.0.40", "192.168.1.2"), lan  # ours, but on another link
    yield arp(1, host(1), "192.168.1.1", "192.168.1.2"), wan
    yield arp(1, host(1), "192.168.1.1", "9.9.9.9"), wan
    yield arp(1, host(50), "0.0.0.0", "10.0.0.1"), lan  # probe
    yield arp(1, host(51), "172.20.0.1", "10.0.0.1"), lan  # not on the link
    yield to("172.20.0.1"), lan
    yield arp(1, host(52), "10.0.0.1", "10.0.0.99"), lan  # our address, another host
    yield arp(1, LAN_MAC, "10.0.0.1", "10.0.0.1"), lan  # our own announcement comes back
    good = arp(1, host(60), "10.0.0.60", "10.0.0.1")
    yield good, {"next_hop": 1}
    faults: list[dict[str, Any]] = [
        {"hwlen": 8},
        {"plen": 16},
        {"hwtype": 6},
        {"ptype": 0x86DD},
        {"op": 8},
    ]
    for fault in faults:
        yield wire(ether() / ARP(hwsrc=host(61), psrc="10.0.0.61", pdst="10.0.0.1", **fault)), lan
    for mac in ("00:00:00:00:00:00", "03:00:00:00:00:01", "ff:ff:ff:ff:ff:ff"):
        yield wire(ether() / ARP(hwsrc=mac, psrc="10.0.0.61", pdst="10.0.0.1")), lan
    for n in (14, 20, 41, 42):
        yield good[:n], lan
    tagged = Ether(good[:12] + b"\x81\0\0\x09" + good[12:])
    yield bytes(tagged), {**lan, "l3_offset_bytes": 18}
    for i in range(80, 90):  # more waiting than may wait in total
        yield to(f"10.0.0.{i}"), lan


NEIGHBOUR_PARAMS: dict[str, Any] = {
    "table": "main",
    "announce": False,
    "hold_pkts": 3,
    "max_hold_pkts": 8,
    "neighbours": [
        {"interface": INTERFACES[interface]["name"], "address": address, "mac": mac}
        for (interface, address), mac in STATICS.items()
    ],
}
NEIGHBOUR_SETTING: dict[str, Any] = {
    "connected_gates": 2,
    "interfaces": INTERFACES,
    "companions": [COMPANION],
    "housekeep_first": True,
}


@case("neighbour")
def neighbour() -> Case:
    traffic = [*forwarded_traffic(), *arp_traffic()]
    frames, metas = [frame for frame, _ in traffic], [meta for _, meta in traffic]
    model = Neighbours(hold=3, hold_in_total=8, max_unresolved=1024)
    return Case("neighbour", NEIGHBOUR_PARAMS, frames, model, NEIGHBOUR_SETTING, metas)


@case("neighbour", "small_table")
def neighbour_small_table() -> Case:
    frames = [to(f"10.0.0.{i}") for i in (100, 101, 102, 100, 5, 103, 101)]
    params = {**NEIGHBOUR_PARAMS, "max_neighbours": 8}
    model = Neighbours(hold=3, hold_in_total=8, max_unresolved=2)
    metas = [{"next_hop": 1} for _ in frames]
    return Case("neighbour", params, frames, model, NEIGHBOUR_SETTING, metas)
