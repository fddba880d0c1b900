# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of pace: which packets of one moment would leave beyond the horizon."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from golden import Case, Fate, all_sorts, case

RATE_BPS = 3_000_000
DELAY_US, HORIZON_US = 100, 2_000
FLOWS = 3


@case("pace")
def pace() -> Case:
    wait_us = [Fraction(0)] * FLOWS  # of each flow's next packet

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        flow = meta["mark"] % FLOWS
        if wait_us[flow] + DELAY_US > HORIZON_US:
            return ("drop", "pace_horizon")
        wait_us[flow] += Fraction(len(frame) * 8 * 1_000_000, RATE_BPS)
        return ("out", 0, frame)

    params = {
        "rate_bps": RATE_BPS,
        "delay_us": DELAY_US,
        "horizon_us": HORIZON_US,
        "max_flows": FLOWS,
    }
    frames = all_sorts(5)
    metas = [{"mark": i * i % 7} for i in range(len(frames))]
    return Case("pace", params, frames, model, metas=metas)
