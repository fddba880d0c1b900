# SPDX-License-Identifier: BSD-3-Clause
"""`optimal` when holding packets costs more than the profile says: it finds out and stops
holding."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from built import needs_daemon_and_extension

from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare

pytestmark = needs_daemon_and_extension

PERIOD_NS = 10_000_000
PERIODS, SETTLED = 60, 10
MIN_OF_BETTER = 0.98  # of null's rate, or of max's


@cache
def l2l3() -> dict[str, Any]:
    """A pipeline whose buffers gain little; its ring is kept full."""
    spec = prepare("l2l3", costs="prior", overrides={"nexthops": "16", "saturate": "true"}).spec
    for flow in spec["flows"]:
        flow["delay_slo_ns"] = 100_000
    return spec


def rate(controller: str, hold_ns: float, began: str = "") -> float:
    """Packets per ns once settled; `began`: the controller before."""
    spec = copy.deepcopy(l2l3())
    spec["simulation"]["loop"]["buffered_per_pkt_ns"] = hold_ns
    simulation = make_simulation(spec)
    pkts = 0
    for i in range(PERIODS):
        if i == 0:
            simulation.set_controller(began or controller, {})
        if i == SETTLED // 2:
            simulation.set_controller(controller, {})
        simulation.run_until((i + 1) * PERIOD_NS)
        period, _ = simulation.step()
        if i >= SETTLED:
            pkts += int(period["tasks"]["in_pkts"][0])
    return pkts / ((PERIODS - SETTLED) * PERIOD_NS)


@pytest.mark.parametrize("began", ["null", "max"])
@pytest.mark.parametrize("hold_ns", [0.0, 4.0, 12.0])
def test_optimal_is_as_fast_as_the_better_of_null_and_max(hold_ns: float, began: str) -> None:
    better = max(rate("null", hold_ns), rate("max", hold_ns))
    assert rate("optimal", hold_ns, began) >= MIN_OF_BETTER * better


def test_the_cases_ask_for_both_answers() -> None:
    assert rate("max", 0.0) > rate("null", 0.0)
    assert rate("null", 12.0) > rate("max", 12.0)
