# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of VLAN tags."""

from __future__ import annotations

from typing import Any

from golden import Case, Fate, all_sorts, case, tagged

TPIDS = (0x8100, 0x88A8)
TPID_BYTES = [tpid.to_bytes(2, "big") for tpid in TPIDS]


def tags_of(frame: bytes) -> list[bytes] | None:
    """The tags from the outside in; None when the frame ends among them."""
    tags = []
    at = 12
    while True:
        if len(frame) < at + 2:
            return None
        if int.from_bytes(frame[at : at + 2], "big") not in TPIDS:
            return tags
        tags.append(frame[at : at + 4])
        at += 4


def depth_fault(frame: bytes, most: int) -> str:
    # Deeper tags than the limit are not looked at: being cut there makes no difference.
    whole = tags_of(frame + bytes(64))
    assert whole is not None
    if len(frame) < 14 or (len(whole) <= most and tags_of(frame) is None):
        return "too_short"
    seen = (len(frame) - 14) // 4
    if len(whole) > most:
        return "too_many_tags" if seen >= most else "too_short"
    return ""


@case("vlan_push")
def vlan_push() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 2)
        if not fault and len(tags_of(frame) or []) == 2:
            fault = "too_many_tags"
        tag = b"\x81\x00" + ((5 << 13) | (1 << 12) | 100).to_bytes(2, "big")
        return ("drop", fault) if fault else ("out", 0, frame[:12] + tag + frame[12:])

    return Case("vlan_push", {"vid": 100, "pcp": 5, "dei": True}, all_sorts(41) + tagged(), model)


@case("vlan_push", "service")
def vlan_push_service() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 3)
        tags = tags_of(frame) or []
        if not fault and len(tags) == 3:
            fault = "too_many_tags"
        priority = tags[0][2] >> 5 if tags else 0
        tag = b"\x88\xa8" + (priority << 13 | 4094).to_bytes(2, "big")
        return ("drop", fault) if fault else ("out", 0, frame[:12] + tag + frame[12:])

    params = {"vid": 4094, "pcp": -1, "tpid": "0x88a8", "max_tags": 3}
    return Case("vlan_push", params, all_sorts(42) + tagged(), model)


@case("vlan_pop")
def vlan_pop() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 2)
        if not fault and not tags_of(frame):
            fault = "not_tagged"
        return ("drop", fault) if fault else ("out", 0, frame[:12] + frame[16:])

    return Case("vlan_pop", {}, all_sorts(43) + tagged(), model)


@case("vlan_pop", "all")
def vlan_pop_all() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 3)
        bare = frame[:12] + frame[12 + 4 * len(tags_of(frame) or []) :]
        return ("drop", fault) if fault else ("out", 0, bare)

    params = {"tags": "all", "untagged": "pass", "max_tags": 3}
    return Case("vlan_pop", params, all_sorts(44) + tagged(), model)


RULES: list[dict[str, Any]] = [
    {"vid": 5, "gate": 1},
    {"vid": 5, "inner_vid": 6, "gate": 2, "vrf": 9},
    {"vid": 100, "gate": 3},
    {"vid": 7, "inner_vid": 7, "gate": 0},
    {"vid": 4094, "gate": 1},
]


def split_model(pops: bool, default: int | None) -> Any:
    rules = {(r["vid"], r.get("inner_vid")): r["gate"] for r in RULES}

    def model(frame: bytes) -> Fate:
        # A tag with a priority and no VLAN is none.
        while len(frame) >= 18 and frame[12:14] in TPID_BYTES and frame[14] & 15 == frame[15] == 0:
            frame = frame[:12] + frame[16:]
        fault = depth_fault(frame, 2)
        tags = tags_of(frame) or []
        if not fault and not tags:
            fault = "not_tagged"
        if fault:
            return ("drop", fault)
        vids = [int.from_bytes(tag[2:], "big") & 0xFFF for tag in tags]
        if len(vids) == 2 and (vids[0], vids[1]) in rules:
            gate, n_matched = rules[vids[0], vids[1]], 2
        elif (vids[0], None) in rules:
            gate, n_matched = rules[vids[0], None], 1
        elif default is None:
            return ("drop", "no_match")
        else:
            return ("out", default, frame)
        return ("out", gate, frame[:12] + frame[12 + 4 * n_matched :] if pops else frame)

    return model


@case("vlan_split")
def vlan_split() -> Case:
    frames = all_sorts(45) + tagged()
    return Case("vlan_split", {"rules": RULES}, frames, split_model(False, None))


@case("vlan_split", "pop")
def vlan_split_pop() -> Case:
    params = {"rules": RULES, "pop": True, "default_gate": 4}
    return Case("vlan_split", params, all_sorts(46) + tagged(), split_model(True, 4))
