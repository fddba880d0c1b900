# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of what a session's rules let pass, hold and end: FAR, BAR, URR."""

from __future__ import annotations

import copy
from typing import Any

from cases_mobile import PDRS, SESSIONS, marks_for, slot_of, users
from golden import Case, Fate, all_sorts, case


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
