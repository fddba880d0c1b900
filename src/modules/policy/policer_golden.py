# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of policer."""

from __future__ import annotations

from dscp_golden import dscp_of, marked_frames, set_dscp
from golden import Case, Fate, all_sorts, case


@case("policer")
def policer() -> Case:
    """A two-rate marker that knows colours; all packets come at once, so no token comes back."""
    tokens = {"committed": 1000, "peak": 2500}
    colour_of = {12: 1, 20: 1, 28: 1, 36: 1, 14: 2, 30: 2, 38: 2}

    def model(frame: bytes) -> Fate:
        if len(frame) < 14:
            return ("drop", "too_short")
        size = len(frame) - 14 + 24
        found = dscp_of(frame)
        colour = colour_of.get(found, 0) if found is not None else 0
        if colour == 2 or tokens["peak"] < size:
            return ("drop", "policer_red")
        tokens["peak"] -= size
        if colour == 1 or tokens["committed"] < size:
            is_ip = found is not None and found >= 0
            return ("out", 0, set_dscp(frame, 1) if is_ip else frame)
        tokens["committed"] -= size
        return ("out", 0, frame)

    params = {
        "mode": "trtcm",
        "cir_bps": 8_000_000,
        "pir_bps": 16_000_000,
        "cbs_bytes": tokens["committed"],
        "pbs_bytes": tokens["peak"],
        "overhead_bytes": 24,
        "colour_aware": True,
        "yellow_action": "dscp le",
        "yellow_dscps": ["af12", "af22", "af32", "af42"],
        "red_dscps": [14, 30, 38],
    }
    frames = marked_frames() + all_sorts(7)
    return Case("policer", params, frames, model)
