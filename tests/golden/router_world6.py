# SPDX-License-Identifier: BSD-3-Clause
"""The router that golden cases of IPv6 modules stand in."""

from __future__ import annotations

from ipaddress import IPv6Interface
from typing import Any

from golden import ether, wire
from scapy.layers.inet import UDP
from scapy.layers.inet6 import (
    IPv6,
)

LAN_MAC, WAN_MAC, HOST = "02:00:00:00:0a:00", "02:00:00:00:0b:00", "02:00:00:00:00:42"
LAN_LINK, WAN_LINK = "fe80::ff:fe00:a00", "fe80::ff:fe00:b00"
INTERFACES: list[dict[str, Any]] = [
    {"name": "lan", "mac": LAN_MAC, "addresses": ["2001:db8:a::1/64", f"{LAN_LINK}/64"]},
    {
        "name": "wan",
        "mac": WAN_MAC,
        "mtu_bytes": 1300,
        "addresses": ["2001:db8:b::1/60", f"{WAN_LINK}/64"],
    },
]
NEXT_HOPS: list[dict[str, Any]] = [
    {"id": 1, "interface": "lan"},
    {"id": 2, "interface": "wan", "via": "fe80::5"},
    {"id": 3, "interface": "lan", "via": "2001:db8:a::9", "mac": "02:00:00:00:00:99"},
    {"id": 4, "gate": 0},
]
COMPANION = {
    "kind": "ipv6_lookup",
    "params": {
        "table": "main",
        "interfaces": True,
        "next_hops": NEXT_HOPS,
        "max_prefixes": 64,
    },
    "connected_gates": 2,
}
A, B = "2001:db8:a::50", "2001:db8:b::60"


def to(dst: str, src: str = A, **more: Any) -> bytes:
    return wire(ether() / IPv6(src=src, dst=dst, **more) / UDP(sport=5, dport=6))


def own_addresses() -> dict[str, int]:
    return {
        str(IPv6Interface(text).ip): i
        for i, interface in enumerate(INTERFACES)
        for text in interface["addresses"]
    }
