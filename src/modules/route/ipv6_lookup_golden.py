# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of ipv6_lookup."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from typing import Any

from golden import Case, Fate, case
from router_world6 import INTERFACES, LAN_LINK, WAN_LINK, B, to

ROUTES: list[dict[str, Any]] = [
    {"prefix": "2a00::/12", "gate": 2},
    {"prefix": "2a00:1::/32", "gate": 3, "metric": 5},
    {"prefix": "2a00:1::/32", "gate": 4, "metric": 2},
    {"prefix": "2a00:1:8000::/33", "gate": 5},
    {"prefix": "2a00:1:8000::7/128", "gate": 2},
    {"prefix": "2b00::/16", "via": "2001:db8:b::9"},
    {"prefix": "2c00::/16", "via": "fe80::9%lan", "gate": 4},
    {"prefix": "2d00::/16", "drop": True},
    {"prefix": "2e00::/16", "gate": "local"},
]
WINNERS: dict[str, int | str] = {
    "2a00::/12": 2,
    "2a00:1::/32": 4,
    "2a00:1:8000::/33": 5,
    "2a00:1:8000::7/128": 2,
    "2b00::/16": 0,
    "2c00::/16": 4,
    "2d00::/16": "route_drop",
    "2e00::/16": 1,
    "ff00::/8": 1,
    "fe80::/10": 0,
    f"{LAN_LINK}/128": 1,
    f"{WAN_LINK}/128": 1,
    "2001:db8:a::/64": 0,
    "2001:db8:a::1/128": 1,
    "2001:db8:a::/128": 1,
    "2001:db8:b::/60": 0,
    "2001:db8:b::1/128": 1,
    "2001:db8:b::/128": 1,
}
DESTINATIONS = [
    *("2a00::1", "2a0f::1", "2a10::1", "2a00:1::1", "2a00:1:7fff::1", "2a00:1:8000::1"),
    *("2a00:1:8000::7", "2a00:1:8000::8", "2a00:2::", "2b00::1", "2c00::1", "2d00::1", "2e00::1"),
    *("2f00::1", "ff02::1", "ff0e::5", "fe80::1", "febf::1", "fec0::1", LAN_LINK, WAN_LINK),
    *("2001:db8:a::1", "2001:db8:a::2", "2001:db8:a::", "2001:db8:a:1::", "2001:db8:b:f::1"),
    *("2001:db8:b:10::", "2001:db8:b::1", "2001:db8:b::", "::", "::1"),
]


@case("ipv6_lookup")
def ipv6_lookup() -> Case:
    by_length = sorted(
        ((IPv6Network(prefix), target) for prefix, target in WINNERS.items()),
        key=lambda entry: -entry[0].prefixlen,
    )

    def model(frame: bytes) -> Fate:
        if len(frame) < 54:
            return ("drop", "too_short")
        for network, target in by_length:
            if IPv6Address(frame[38:54]) in network:
                return ("drop", target) if isinstance(target, str) else ("out", target, frame)
        return ("drop", "no_route")

    frames = [to(dst) for dst in DESTINATIONS] + [to(B)[:53], b""]
    params = {"routes": ROUTES, "interfaces": True, "max_prefixes": 256}
    return Case(
        "ipv6_lookup", params, frames, model, {"connected_gates": 6, "interfaces": INTERFACES}
    )
