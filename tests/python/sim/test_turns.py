# SPDX-License-Identifier: BSD-3-Clause
"""test_turns.py - buffers with equal triggers fire one after the other, also after gaps in the
worker's time, which fill all of them at once."""

from __future__ import annotations

from typing import Any

import pytest
from built import needs_daemon_and_extension

from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare

pytestmark = needs_daemon_and_extension

PERIOD_NS, PERIODS = 10_000_000, 12
GAPS = {
    "rate_per_s": 800,
    "lengths_ns": [5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000],
}
FILL_NS = 26 / 19.7e6 * 16 * 1e9  # of a buffer with trigger 27, at the rate of 16 branches
IN_STEP = 1.5  # fills: the p95 if all fire in one run, which then takes 14 us


def gateway() -> dict[str, Any]:
    spec = prepare(
        "gateway",
        costs="prior",
        overrides={"nexthops": "16", "trigger": "27", "age_limit": "25us", "rate_pps": "300000"},
        run_order="depth",
    ).spec
    spec["simulation"]["stalls"] = GAPS
    return spec


@pytest.mark.parametrize("quiet_ns", [1_000_000, 200_000_000])
def test_buffers_take_turns_again_after_gaps(quiet_ns: int) -> None:
    """Whatever came before: a quiet time, in which they are seldom full, is soon forgotten."""
    simulation = make_simulation(gateway())
    simulation.run_until(quiet_ns)
    simulation.edit({"generators": {"load": {"is_saturating": True}}, "idle": "hold"})
    now_ns = quiet_ns + 2 * PERIOD_NS
    simulation.run_until(now_ns)
    simulation.period()
    for _ in range(PERIODS):
        now_ns += PERIOD_NS
        simulation.run_until(now_ns)
        period = simulation.period()
        assert max(int(ns) for ns in period["flows"]["delay_ns"]) < IN_STEP * FILL_NS
        assert int(period["tasks"]["gaps"][0]) > 0
