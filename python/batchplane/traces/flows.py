# SPDX-License-Identifier: BSD-3-Clause
"""flows.py - the flow of a recorded frame, and rules that join flows under a name."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.problems import BadInput, Problem, suggestion

_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6", 132: "sctp"}
_NUMBERS = {name: number for number, name in _PROTOCOLS.items()}
_WITH_PORTS = (6, 17, 132)
_RULE_KEYS = ("name", "src", "dst", "protocol", "src_port", "dst_port", "vlan")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class FiveTuple:
    """The fields of a flow that rules can match; addresses are None in frames that are not IP."""

    src: ipaddress.IPv4Address | ipaddress.IPv6Address | None = None
    dst: ipaddress.IPv4Address | ipaddress.IPv6Address | None = None
    protocol: int = 0
    src_port: int | None = None
    dst_port: int | None = None
    vlan: int | None = None  # of the outer tag
    ether_type: int = 0

    def __str__(self) -> str:
        tag = "" if self.vlan is None else f" vlan {self.vlan}"
        if self.src is None or self.dst is None:
            return f"0x{self.ether_type:04x}{tag}"
        protocol = _PROTOCOLS.get(self.protocol, f"protocol {self.protocol}")
        if self.src_port is None:
            return f"{self.src} > {self.dst} {protocol}{tag}"
        left, right = self.src, self.dst
        if left.version == 6:
            return f"[{left}]:{self.src_port} > [{right}]:{self.dst_port} {protocol}{tag}"
        return f"{left}:{self.src_port} > {right}:{self.dst_port} {protocol}{tag}"


@dataclass(frozen=True)
class Rule:
    """Flows of these prefixes, protocol, ports and tag belong to traffic flow `name`."""

    name: str
    src: Network | None = None
    dst: Network | None = None
    protocol: int | None = None
    src_port: int | None = None
    dst_port: int | None = None
    vlan: int | None = None

    def takes(self, key: FiveTuple) -> bool:
        """True if everything that the rule names matches."""
        for network, address in ((self.src, key.src), (self.dst, key.dst)):
            if network is not None and (address is None or address not in network):
                return False
        pairs = (
            (self.protocol, key.protocol),
            (self.src_port, key.src_port),
            (self.dst_port, key.dst_port),
            (self.vlan, key.vlan),
        )
        return all(wanted is None or wanted == found for wanted, found in pairs)


def parse_rules(entries: Sequence[Mapping[str, Any]], where: str = "rules") -> list[Rule]:
    """Parses rules, [{name, src, dst, protocol, ..}]; the first that matches a flow counts."""
    problems: list[Problem] = []
    rules = [_parse_rule(entry, f"{where}[{i}]", problems) for i, entry in enumerate(entries)]
    if problems:
        raise BadInput(problems)
    return rules


def _parse_rule(entry: Mapping[str, Any], key: str, problems: list[Problem]) -> Rule:
    def bad(name: str, message: str, fix: str = "") -> None:
        problems.append(Problem(message, key=f"{key}.{name}", fix=fix))

    for name in entry:
        if name not in _RULE_KEYS:
            bad(name, f"unknown key '{name}'", suggestion(name, _RULE_KEYS))
    if not entry.get("name"):
        bad("name", "a rule needs the name of a traffic flow")
    values: dict[str, Any] = {"name": str(entry.get("name", ""))}
    for name in ("src", "dst"):
        if entry.get(name) is None:
            continue
        try:
            values[name] = ipaddress.ip_network(str(entry[name]), strict=False)
        except ValueError:
            bad(name, f"'{entry[name]}' is not a prefix", "such as 10.0.0.0/8 or 2001:db8::/32")
    protocol = entry.get("protocol")
    if isinstance(protocol, str) and protocol not in _NUMBERS:
        bad("protocol", f"unknown protocol '{protocol}'", suggestion(protocol, _NUMBERS))
    elif isinstance(protocol, str):
        values["protocol"] = _NUMBERS[protocol]
    limits = {"protocol": 255, "src_port": 65535, "dst_port": 65535, "vlan": 4095}
    for name, most in limits.items():
        value = entry.get(name)
        if value is None or (isinstance(value, str) and name == "protocol"):
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            bad(name, f"'{value}' is not a number from 0 to {most}")
        values[name] = value
    return Rule(**values)


def _layer3(frame: bytes) -> int:
    """The position of the payload's EtherType, after any tags."""
    at = 12
    while frame[at : at + 2] in _TAGS and at < 12 + 4 * 4:
        at += 4
    return at


def _vlan(frame: bytes, at: int) -> int:
    return int.from_bytes(frame[at + 2 : at + 4], "big") & 0xFFF


def flow_bytes(frame: bytes) -> bytes:
    """The bytes that identify a flow: the same for all its packets, and cheap to extract."""
    at = _layer3(frame)
    # Of a tag only the VLAN matters, not its priority.
    tags = b"".join(_vlan(frame, i).to_bytes(2, "big") for i in range(12, at, 4))
    head = frame[:6] + tags + frame[at : at + 2]
    kind, ip = frame[at : at + 2], at + 2
    if kind == b"\x08\x00" and len(frame) >= ip + 20:
        if frame[ip + 9] in _WITH_PORTS and not (frame[ip + 6] & 0x3F or frame[ip + 7]):
            l4 = ip + (frame[ip] & 15) * 4
            return head + frame[ip + 9 : ip + 10] + frame[ip + 12 : ip + 20] + frame[l4 : l4 + 4]
        return head + frame[ip + 9 : ip + 10] + frame[ip + 12 : ip + 20]
    if kind == b"\x86\xdd" and len(frame) >= ip + 40:
        ports = frame[ip + 40 : ip + 44] if frame[ip + 6] in _WITH_PORTS else b""
        return head + frame[ip + 6 : ip + 7] + frame[ip + 8 : ip + 40] + ports
    return head


def five_tuple_of(frame: bytes) -> FiveTuple:
    """The fields of a frame's flow, for rules and for people."""
    at = _layer3(frame)
    ether_type = int.from_bytes(frame[at : at + 2], "big")
    vlan = _vlan(frame, 12) if at > 12 else None
    key = flow_bytes(frame)[6 + (at - 12) // 2 + 2 :]
    size = {0x0800: 4, 0x86DD: 16}.get(ether_type, 0)
    if size == 0 or not key:
        return FiveTuple(vlan=vlan, ether_type=ether_type)
    src, dst = ipaddress.ip_address(key[1 : 1 + size]), ipaddress.ip_address(key[1 + size :][:size])
    ports = key[1 + 2 * size :]
    src_port, dst_port = (
        (int.from_bytes(ports[:2], "big"), int.from_bytes(ports[2:], "big"))
        if len(ports) == 4
        else (None, None)
    )
    return FiveTuple(src, dst, key[0], src_port, dst_port, vlan, ether_type)
