# SPDX-License-Identifier: BSD-3-Clause
"""rates_claims.py - the speed-ups over the original that we require, and claims at 80 %."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.experiment import Row
from ..common.verdict import Verdict, at_least, at_most, percent, times

# Relative to the original's `full`, at the same SLO.
_MIN_RATIO = {"L2L3(16)": 3.0, "GW(16)": 2.5, "VRF(2,4)": 2.5}
# The limit for batches of 32, if a leaf takes 4000 ns per batch.
ROBOT_FULL_PPS = 7.7e6
_ROBOT, _ORIGINALS, _TIGHT = "RC(16)", "the original's", "80 % of max's"
MAX_VIOLATED = 0.005


def claims(rows: Sequence[Row]) -> list[Verdict]:
    """One verdict per claim."""
    by = {(row["pipeline"], row["slo"], row["controller"]): row for row in rows}
    found = [
        at_least(
            f"ours: {label} under optimal, times the original's full at the same SLO",
            {label: by[label, _ORIGINALS, "optimal"]["ratio"]}, least, times,
        )
        for label, least in _MIN_RATIO.items()
    ]  # fmt: skip
    robot = {c: by[_ROBOT, _ORIGINALS, c] for c in ("null", "optimal")}
    most = robot["optimal"]["rate_pps"]
    tight = [label for label, slo, c in by if slo == _TIGHT and c == "optimal"]
    kept = {
        f"{row['pipeline']} at {row['slo']}": row["violated_ratio"]
        for row in rows
        if row["controller"] == "optimal" and row["violated_ratio"] is not None
    }
    return [
        *found,
        at_least(
            "ours: RC(16) under optimal, of the rate that full batches allow",
            {_ROBOT: most / ROBOT_FULL_PPS}, 0.9, times,
        ),
        at_least(
            "ours: RC(16) under optimal, times our own null",
            {_ROBOT: robot["optimal"]["of_null"]}, 10.0, times,
        ),
        at_least(
            "ours: null is too late there (periods violated)",
            {_ROBOT: robot["null"]["violated_ratio"] or 0.0}, 0.5, percent,
        ),
        at_least(
            "ours: at 80 % of max's delay optimal keeps 0.95 of max's rate",
            {label: by[label, _TIGHT, "optimal"]["of_max"] for label in tight},
            0.95, times,
        ),
        at_most(
            "ours: optimal violates an SLO in at most 0.5 % of periods", kept, MAX_VIOLATED,
            percent,
        ),
    ]  # fmt: skip
