# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of ipv4_lookup."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

from golden import Case, Fate, all_sorts, case, ether, wire
from router_world import INTERFACES, LAN, WAN, to
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.l2 import Dot1Q
from scapy.packet import Raw

ROUTES: list[dict[str, Any]] = [
    {"prefix": "10.0.0.0/8", "gate": 2},
    {"prefix": "10.1.0.0/16", "gate": 3, "metric": 5},
    {"prefix": "10.1.0.0/16", "gate": 4, "metric": 2},
    {"prefix": "10.1.1.128/25", "gate": 5},
    {"prefix": "10.1.1.200/32", "gate": 2},
    {"prefix": "20.0.0.0/8", "group": [{"next_hop": 100}, {"next_hop": 101, "weight": 3}]},
    {"prefix": "30.0.0.0/8", "via": "192.168.1.1"},
    {"prefix": "31.0.0.0/8", "via": "192.168.1.1", "gate": 4},
    {"prefix": "40.0.0.0/8", "gate": 2, "source": "static"},
    {"prefix": "40.0.0.0/8", "gate": 3, "source": "user"},
    {"prefix": "50.0.0.0/8", "gate": "local"},
    {"prefix": "172.16.0.0/12", "drop": True},
]
# What these and the interfaces come to, one winner per prefix. Which member of the group a flow
# takes is the hash's own affair: both leave by gate 3.
WINNERS: dict[str, int | str] = {
    "10.0.0.0/8": 2,
    "10.1.0.0/16": 4,
    "10.1.1.128/25": 5,
    "10.1.1.200/32": 2,
    "20.0.0.0/8": 3,
    "30.0.0.0/8": 0,
    "31.0.0.0/8": 4,
    "40.0.0.0/8": 3,
    "50.0.0.0/8": 1,
    "172.16.0.0/12": "route_drop",
    "10.0.0.0/24": 0,
    "10.0.0.1/32": 1,
    "10.0.0.255/32": 1,
    "192.168.1.0/30": 0,
    "192.168.1.2/32": 1,
    "192.168.1.3/32": 1,
    "9.9.9.9/32": 1,
    "255.255.255.255/32": 1,
    "224.0.0.0/4": 1,
}
DESTINATIONS = [
    *("10.9.9.9", "10.1.0.1", "10.1.1.127", "10.1.1.128", "10.1.1.200", "10.1.1.255", "10.2.0.0"),
    *("20.1.2.3", "30.1.1.1", "31.1.1.1", "40.1.1.1", "50.0.0.1", "172.16.0.1", "172.31.255.255"),
    *("172.32.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.255", "10.0.0.0", "192.168.1.1", "9.9.9.9"),
    *("192.168.1.2", "192.168.1.3", "192.168.1.4", "255.255.255.255", "11.0.0.0", "9.255.255.255"),
    *("9.9.9.8", "0.0.0.0", "255.255.255.254", "224.0.0.251", "239.255.255.250", "240.0.0.1"),
]


def lookup_model(winners: dict[str, int | str], l3: int = 14) -> Any:
    by_length = sorted(
        ((IPv4Network(prefix), target) for prefix, target in winners.items()),
        key=lambda entry: -entry[0].prefixlen,
    )

    def model(frame: bytes) -> Fate:
        if len(frame) < l3 + 20:
            return ("drop", "too_short")
        address = IPv4Address(frame[l3 + 16 : l3 + 20])
        for network, target in by_length:
            if address in network:
                return ("drop", target) if isinstance(target, str) else ("out", target, frame)
        return ("drop", "no_route")

    return model


def lookup_frames() -> list[bytes]:
    frames = [to(dst) for dst in DESTINATIONS]
    frames += [to(f"20.0.{i}.1", src=f"10.0.0.{i}") for i in range(20)]
    big = IP(src="10.0.0.7", dst="20.0.0.1") / UDP(sport=1, dport=2) / Raw(b"f" * 3000)
    frames += [wire(ether() / part) for part in fragment(big, fragsize=1400)]  # type: ignore[no-untyped-call]
    return frames + all_sorts(11)


@case("ipv4_lookup")
def ipv4_lookup() -> Case:
    params = {
        "interfaces": True,
        "next_hops": [{"id": 100, "gate": 3}, {"id": 101, "gate": 3}],
        "routes": ROUTES,
    }
    setting = {"connected_gates": 6, "interfaces": INTERFACES}
    return Case("ipv4_lookup", params, lookup_frames(), lookup_model(WINNERS), setting)


SOURCES = [
    *("10.0.0.50", "10.0.0.1", "10.0.0.255", "192.168.1.1", "192.168.1.2", "9.9.9.9", "10.9.0.1"),
    *("30.0.0.1", "172.16.0.1", "11.0.0.1", "8.8.8.8", "224.0.0.1"),
]


# By which interface the way back leads; None: by none.
def way_back(address: IPv4Address) -> int | None:
    ways = {"10.0.0.0/24": LAN, "192.168.1.0/30": WAN, "30.0.0.0/8": WAN, "10.9.0.0/16": LAN}
    own_ones = {"10.0.0.1", "10.0.0.255", "192.168.1.2", "192.168.1.3", "9.9.9.9"}
    if str(address) in own_ones:
        return None
    return next((way for net, way in ways.items() if address in IPv4Network(net)), None)


def source_case(mode: str, closed: list[str]) -> Case:
    routes = [
        {"prefix": "30.0.0.0/8", "via": "192.168.1.1"},
        {"prefix": "10.9.0.0/16", "via": "10.0.0.9"},
        {"prefix": "172.16.0.0/12", "drop": True},
    ]
    traffic = [
        (to(dst, src), {"in_interface": interface})
        for src in SOURCES
        for dst in ("10.0.0.60", "30.0.0.9", "10.0.0.1", "9.9.9.9", "11.1.1.1")
        for interface in (LAN, WAN)
    ]

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        src, dst = IPv4Address(frame[26:30]), IPv4Address(frame[30:34])
        if dst == IPv4Address("11.1.1.1"):
            return ("drop", "no_route")
        back = way_back(src)
        if mode != "off" and (back is None or (mode == "strict" and back != meta["in_interface"])):
            return ("drop", "reverse_path")
        is_own = str(dst) in ("10.0.0.1", "9.9.9.9")
        out = (LAN if str(dst) == "10.0.0.1" else WAN) if is_own else way_back(dst)
        if out == WAN and "wan" in closed:
            return ("drop", "closed_interface")
        return ("out", 1 if is_own else 0, frame)

    params = {"interfaces": True, "routes": routes, "reverse_path": mode}
    if closed:
        params["closed_interfaces"] = closed
    frames, metas = [frame for frame, _ in traffic], [meta for _, meta in traffic]
    setting = {"connected_gates": 2, "interfaces": INTERFACES}
    return Case("ipv4_lookup", params, frames, model, setting, metas)


@case("ipv4_lookup", "strict")
def ipv4_lookup_strict() -> Case:
    return source_case("strict", [])


@case("ipv4_lookup", "loose")
def ipv4_lookup_loose() -> Case:
    return source_case("loose", ["wan"])


@case("ipv4_lookup", "default")
def ipv4_lookup_default() -> Case:
    params = {
        "routes": [
            {"prefix": "0.0.0.0/0", "gate": 1, "metric": 3},
            {"prefix": "0.0.0.0/0", "gate": 2, "metric": 4},
            {"prefix": "10.0.0.0/8", "gate": 0},
            {"prefix": "10.1.0.0/16", "drop": True},
        ]
    }
    winners: dict[str, int | str] = {"0.0.0.0/0": 1, "10.0.0.0/8": 0, "10.1.0.0/16": "route_drop"}
    return Case(
        "ipv4_lookup", params, lookup_frames(), lookup_model(winners), {"connected_gates": 3}
    )


@case("ipv4_lookup", "behind_vlan")
def ipv4_lookup_behind_vlan() -> Case:
    frames = [
        wire(ether() / Dot1Q(vlan=7) / IP(src="10.0.0.50", dst=dst) / UDP()) for dst in DESTINATIONS
    ]
    frames += [frames[0][:n] for n in (14, 18, 34, 37, 38)]
    params = {"routes": [{"prefix": "10.0.0.0/8", "gate": 1}, {"prefix": "10.1.0.0/16", "gate": 0}]}
    winners: dict[str, int | str] = {"10.0.0.0/8": 1, "10.1.0.0/16": 0}
    setting = {"connected_gates": 2, "meta": {"l3_offset_bytes": 18}}
    return Case("ipv4_lookup", params, frames, lookup_model(winners, 18), setting)
