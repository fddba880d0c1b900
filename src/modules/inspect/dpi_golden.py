# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of dpi: Python's own searches say what rules match."""

from __future__ import annotations

import random
import re
from typing import Any

from golden import Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw
from transports import place_of, transports

WORDS = ["ab", "abc", "bc", "cab", "b|00|", "AbC", "aaaa", "|ff fe|", "x y", "c"]
PROTOCOLS = {"tcp": 6, "udp": 17}


def bytes_of(content: str) -> bytes:
    parts = content.split("|")
    return b"".join(bytes.fromhex(part) if i % 2 else part.encode() for i, part in enumerate(parts))


def payload_of(frame: bytes) -> tuple[int, bytes]:
    """The transport's number, 0 where there is none to tell, and what is looked at."""
    if len(frame) <= 14:
        return 0, b""
    kind, _version, proto, start, end = place_of(frame)
    if kind not in ("whole", "fragment"):
        return 0, frame[14:]
    part = frame[14 + start : 14 + end]
    is_later = frame[14] >> 4 == 4 and int.from_bytes(frame[20:22], "big") & 0x1FFF
    is_later = is_later or (frame[14] >> 4 == 6 and kind == "fragment" and is_later6(frame))
    header = 0
    if not is_later and proto == 17:
        header = 8
    if not is_later and proto == 6 and len(part) >= 20:
        header = (part[12] >> 4) * 4
    return proto, part[min(header, len(part)) :]


def is_later6(frame: bytes) -> bool:
    """Whether the fragment header, wherever it is, has an offset."""
    at, next_header = 54, frame[20]
    while next_header in (0, 43, 60, 135) and at + 2 <= len(frame):
        next_header, at = frame[at], at + (frame[at + 1] + 1) * 8
    return next_header == 44 and bool(int.from_bytes(frame[at + 2 : at + 4], "big") & 0xFFF8)


def is_match(rule: dict[str, Any], proto: int, payload: bytes) -> bool:
    if "proto" in rule and PROTOCOLS[rule["proto"]] != proto:
        return False
    contents = rule.get("content", [])
    for content in [contents] if isinstance(contents, str) else contents:
        what, where = bytes_of(content), payload
        if rule.get("nocase"):
            what, where = what.lower(), where.lower()
        if what not in where:
            return False
    if "pcre" in rule:
        text, flags = rule["pcre"][1:].rsplit("/", 1)
        if not re.search(text.encode(), payload, re.IGNORECASE if "i" in flags else 0):
            return False
    return True


def some_frames() -> list[bytes]:
    rng = random.Random(61)
    letters = [b"a", b"b", b"c", b"A", b"B", b"C", b"\0", b"\xff", b"\xfe", b"x y", b"12", b"q"]
    frames = []
    for n in range(110):
        load = Raw(b"".join(rng.choices(letters, k=n % 23 * (1 + n % 5))))
        ip = (
            IPv6(src="fd00::1", dst="fd00::2") if n % 4 == 3 else IP(src="10.0.0.1", dst="10.0.0.2")
        )
        frames.append(wire(ether() / ip / (TCP() if n % 3 == 0 else UDP()) / load))
    return (frames + transports() + all_sorts(62))[:256]


def case_of(rules: list[dict[str, Any]], engine: str) -> Case:
    def model(frame: bytes) -> Fate:
        proto, payload = payload_of(frame)
        actions = {rule["action"] for rule in rules if is_match(rule, proto, payload)}
        if "drop" in actions:
            return ("drop", "dpi_match")
        is_alert = actions == {"alert"}
        return ("out", 1 if is_alert else 0, frame)

    params = {"rules": rules, "engine": engine}
    return Case("dpi", params, some_frames(), model, {"connected_gates": 2})


def rules_of_words() -> list[dict[str, Any]]:
    actions = ("alert", "mark", "alert", "drop")
    rules: list[dict[str, Any]] = [
        {"id": i + 1, "content": word, "action": actions[i % 4], "nocase": i % 3 == 0}
        for i, word in enumerate(WORDS)
    ]
    for i, rule in enumerate(rules):
        if i % 4 in (1, 3):
            rule["proto"] = "tcp" if i % 8 < 4 else "udp"
    rules.append({"id": 50, "content": ["cab", "bc", "x y"], "action": "drop"})
    return rules


@case("dpi")
def dpi() -> Case:
    return case_of(rules_of_words(), "aho_corasick")


@case("dpi", variant="hyperscan")
def dpi_hyperscan() -> Case:
    expressions = [
        {"id": 60, "pcre": "/c[0-9]+a/", "action": "alert"},
        {"id": 61, "pcre": "/A(bc)+12/i", "action": "drop"},
        {"id": 62, "pcre": "/^q+/", "content": "b", "action": "mark"},
    ]
    return case_of(rules_of_words() + expressions, "hyperscan")
