# SPDX-License-Identifier: BSD-3-Clause
"""The router that golden cases of routing modules stand in."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Any

from golden import ether, wire
from scapy.layers.inet import IP, UDP

LAN_MAC = "02:00:00:00:0a:00"
WAN_MAC = "02:00:00:00:0b:00"
INTERFACES: list[dict[str, Any]] = [
    {"name": "lan", "mac": LAN_MAC, "mtu_bytes": 1500, "addresses": ["10.0.0.1/24"]},
    {
        "name": "wan",
        "mac": WAN_MAC,
        "mtu_bytes": 600,
        "addresses": ["192.168.1.2/30", "9.9.9.9/32"],
    },
]
LAN, WAN = 0, 1

Meta = dict[str, Any]


def own(interface: int) -> list[IPv4Interface]:
    return [IPv4Interface(text) for text in INTERFACES[interface]["addresses"]]


def all_own() -> list[IPv4Interface]:
    return own(LAN) + own(WAN)


def broadcasts() -> set[IPv4Address]:
    return {a.network.broadcast_address for a in all_own() if a.network.prefixlen <= 30}


def to(dst: str, src: str = "10.0.0.50", **more: Any) -> bytes:
    return wire(ether() / IP(src=src, dst=dst, **more) / UDP(sport=5, dport=6))


NEXT_HOPS: list[dict[str, Any]] = [
    {"id": 1, "interface": "lan"},
    {"id": 2, "interface": "wan", "via": "192.168.1.1"},
    {"id": 3, "interface": "lan", "via": "10.0.0.9", "mac": "02:00:00:00:00:99"},
    {"id": 4, "gate": 0},
    {"id": 5, "drop": True},
]
COMPANION = {
    "kind": "ipv4_lookup",
    "params": {"table": "main", "interfaces": True, "next_hops": NEXT_HOPS},
    "connected_gates": 2,
}


def is_host(address: IPv4Address) -> bool:
    first = address.packed[0]
    return first not in (0, 127) and first < 224
