# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of sessions in PFCP's terms."""

from __future__ import annotations

import copy
from typing import Any

from golden import Case, Fate, all_sorts, case
from mobile_world import PDRS, SESSIONS, UE, marks_for, slot_of, users
from transports import place_of


def downlink_slot(frame: bytes) -> int | str:
    if len(frame) < 34:
        return "too_short"
    if frame[14] >> 4 == 6 and len(frame) < 54:
        return "too_short"
    if frame[14] >> 4 == 6:
        if frame[38:46] != bytes.fromhex("20010db800450002"):
            return "unknown_ue"
        # The only filter for IPv6 is the one without addresses.
        _, _, proto, start, _ = place_of(frame)
        ports = frame[14 + start : 18 + start]
        sport, dport = int.from_bytes(ports[:2], "big"), int.from_bytes(ports[2:], "big")
        return 2 if proto == 6 and sport == 5060 and 1000 <= dport <= 2000 else 1
    if frame[14] >> 4 != 4:
        return "bad_version"
    dst = ".".join(str(b) for b in frame[30:34])
    if dst == "10.45.0.3":
        return 6 if frame[26:30] == bytes([198, 51, 100, 7]) else "no_pdr"
    if dst != UE:
        return "unknown_ue"
    kind, _, proto, start, end = place_of(frame)
    if kind != "whole" or proto not in (6, 17) or end - start < 4:
        return 1
    sport = int.from_bytes(frame[14 + start : 16 + start], "big")
    dport = int.from_bytes(frame[16 + start : 18 + start], "big")
    is_rtp = proto == 17 and frame[26:29] == bytes([198, 51, 100]) and 5000 <= sport <= 5010
    is_sip = proto == 6 and sport == 5060 and 1000 <= dport <= 2000
    return 2 if is_rtp or is_sip else 1


@case("session_downlink")
def session_downlink() -> Case:
    def model(frame: bytes) -> Fate:
        slot = downlink_slot(frame)
        if isinstance(slot, str):
            return ("drop", slot)
        return ("out", PDRS[slot][1].get("bearer", 0), frame)

    params = {"sessions": SESSIONS, "by": "bearer"}
    return Case("session_downlink", params, users() + all_sorts(62), model, {"connected_gates": 2})


@case("session_split")
def session_split() -> Case:
    frames = users() + all_sorts(63)

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        slot = slot_of(meta)
        if slot is None:
            return ("drop", "session_gone")
        session, pdr = PDRS[slot]
        is_up = pdr["source"] == "access"
        gate = 2 * (session.get("group", 0) * 2 + pdr.get("bearer", 0)) + is_up
        return ("out", gate, frame) if gate < 10 else ("drop", "no_match")

    params = {"sessions": SESSIONS, "by": "flow", "bearers": 2}
    setting = {"connected_gates": 10}
    return Case("session_split", params, frames, model, setting, marks_for(frames))


@case("session_hold")
def session_hold() -> Case:
    """One bearer of user 1 buffers, at most 3 packets of it; what has no rule goes on."""
    sessions = copy.deepcopy(SESSIONS)
    sessions[0]["fars"][2]["action"] = "buffer"
    sessions[0]["bar"] = {"hold_pkts": 3}
    frames = users() + all_sorts(68)
    held = iter(range(len(frames)))

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        if slot_of(meta) != 2:
            return ("out", 0, frame)
        return ("keep",) if next(held) < 3 else ("drop", "session_hold_full")

    return Case("session_hold", {"sessions": sessions}, frames, model, {}, marks_for(frames))


@case("session_enforce")
def session_enforce() -> Case:
    frames = users() + all_sorts(64)

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        slot = slot_of(meta)
        if slot is None:
            return ("drop", "session_gone")
        if len(frame) < 34:
            return ("drop", "too_short")
        session, pdr = PDRS[slot]
        far = next(far for far in session["fars"] if far["id"] == pdr["far"])
        return ("drop", "far_drop") if far.get("action") == "drop" else ("out", 0, frame)

    return Case("session_enforce", {"sessions": SESSIONS}, frames, model, {}, marks_for(frames))


@case("session_enforce", "quota")
def session_enforce_quota() -> Case:
    """User 1 has quotas for both bearers together and for the uplink; a packet beyond ends them."""
    sessions = copy.deepcopy(SESSIONS)
    for pdr in sessions[0]["pdrs"]:
        pdr["urrs"] = [1, 2] if pdr["id"] == 3 else [1]
    total, uplink, special = 1600, 500, 200
    sessions[0]["urrs"] = [
        {"id": 1, "quota_bytes": total, "up_quota_bytes": uplink},
        {"id": 2, "down_quota_bytes": special, "quota_ns": 1_000_000_000},
    ]
    frames = users() + all_sorts(69)
    left = {"total": total, "uplink": uplink, "special": special}
    over: set[str] = set()

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        slot = slot_of(meta)
        if slot is None:
            return ("drop", "session_gone")
        if len(frame) < 34:
            return ("drop", "too_short")
        session, pdr = PDRS[slot]
        if session["seid"] == 3:
            return ("drop", "far_drop")
        if session["seid"] != 1:
            return ("out", 0, frame)
        at = 16 if frame[14] >> 4 == 4 else 18
        told = int.from_bytes(frame[at : at + 2], "big") + (0 if at == 16 else 40)
        size = min(told, len(frame) - 14)
        asked = {"total"} | ({"uplink"} if pdr["source"] == "access" else set())
        asked |= {"special"} if pdr["id"] == 3 else set()
        over.update(name for name in asked if left[name] < size or left[name] == 0)
        if asked & over:
            return ("drop", "urr_quota")
        for name in asked:
            left[name] -= size
        return ("out", 0, frame)

    return Case("session_enforce", {"sessions": sessions}, frames, model, {}, marks_for(frames))
