# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of mobile users in PFCP's terms, and packets for them."""

from __future__ import annotations

from typing import Any

from golden import ether, wire
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

GATEWAY, GNB = "192.0.2.1", "192.0.2.2"
GATEWAY6, GNB6 = "2001:db8::1", "2001:db8:ffff::2"
UE, UE6, SERVER = "10.45.0.2", "2001:db8:45:2::/64", "198.51.100.7"
# User 1 has a bearer of his own for RTP and SIP, user 2 one tunnel for two QoS flows, user 3 no
# address: whatever comes out of his tunnel is taken.
SESSIONS: list[dict[str, Any]] = [
    {
        "seid": 1,
        "ue": UE,
        "ue6": UE6,
        "group": 1,
        "pdrs": [
            {"id": 1, "source": "access", "teid": 0x101, "far": 1},
            {"id": 2, "source": "core", "precedence": 200, "far": 2, "qers": [1]},
            {
                "id": 3,
                "source": "core",
                "precedence": 10,
                "bearer": 1,
                "far": 3,
                "filters": [
                    "permit out udp from 198.51.100.0/24 5000-5010 to assigned",
                    "permit out 6 from any 5060 to assigned 1000-2000",
                ],
            },
            {"id": 4, "source": "access", "teid": 0x102, "far": 1, "bearer": 1},
        ],
        "fars": [
            {"id": 1},
            {"id": 2, "teid": 0xA001, "peer": GNB},
            {"id": 3, "teid": 0xA002, "peer": "192.0.2.3"},
        ],
        "qers": [{"id": 1, "qfi": 9}],
    },
    {
        "seid": 2,
        "ue": "10.45.0.3",
        "group": 2,
        "pdrs": [
            {"id": 1, "source": "access", "teid": 0x201, "qfi": 5, "far": 1, "bearer": 1},
            {"id": 2, "source": "access", "teid": 0x201, "qfi": 6, "far": 1, "precedence": 9},
            {
                "id": 3,
                "source": "core",
                "far": 1,
                "filters": ["permit out ip from 198.51.100.7 to any"],
            },
        ],
        "fars": [{"id": 1}],
    },
    {
        "seid": 3,
        "pdrs": [{"id": 1, "source": "access", "teid": 0x301, "far": 1}],
        "fars": [{"id": 1, "action": "drop"}],
    },
]
PDRS = [(s, p) for s in SESSIONS for p in s["pdrs"]]


def first_marks() -> list[int]:
    """Uplink rules have slots from 0 on, downlink ones from 64 on; a new slot is of generation 1."""
    taken = {"access": 0, "core": 64}
    marks = []
    for _, pdr in PDRS:
        marks.append(1 << 24 | taken[pdr["source"]])
        taken[pdr["source"]] += 1
    return marks


MARKS = first_marks()


def users() -> list[bytes]:
    """What is for the users: by rule, with all that a packet may be."""
    frames = []
    for dst in (UE, "10.45.0.3", "10.45.0.4"):
        for src in (SERVER, "203.0.113.1"):
            for sport in (4999, 5000, 5010, 5011, 5060):
                ends = IP(src=src, dst=dst, tos=sport % 7)
                frames.append(wire(ether() / ends / UDP(sport=sport, dport=1500) / Raw(b"x" * 30)))
                frames.append(wire(ether() / ends / TCP(sport=sport, dport=2000)))
            frames.append(wire(ether() / IP(src=src, dst=dst) / TCP(sport=5060, dport=2001)))
            frames.append(wire(ether() / IP(src=src, dst=dst) / ICMP()))
            frames.append(wire(ether() / IP(src=src, dst=dst, frag=9, proto=17) / Raw(b"part" * 9)))
    for dst in ("2001:db8:45:2::77", "2001:db8:45:3::77"):
        frames.append(
            wire(ether() / IPv6(src="2001:db8::5", dst=dst) / TCP(sport=5060, dport=1500))
        )
        frames.append(wire(ether() / IPv6(src="2001:db8::5", dst=dst) / UDP(sport=5000, dport=1)))
    return frames


def marks_for(frames: list[bytes]) -> list[dict[str, Any]]:
    """Rules in turn; then one that is of an older generation, none, and one that never was."""
    order = [*MARKS, 2 << 24, 0, 1 << 24 | 4000, 0xFFFFFFFF]
    return [{"mark": order[i % len(order)]} for i in range(len(frames))]


def slot_of(meta: dict[str, Any]) -> int | None:
    return MARKS.index(meta["mark"]) if meta["mark"] in MARKS else None
