# SPDX-License-Identifier: BSD-3-Clause
"""test_optimal_estimates.py - `optimal` where it has to estimate costs from sampled executions, as
in a daemon, beginning with those of another moment."""

from __future__ import annotations

from typing import Any

import pytest
from built import needs_daemon_and_extension

from batchplane.base.promise import DEFAULT_PERCENTILE, is_slo_broken
from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare

pytestmark = needs_daemon_and_extension

PERIOD_NS = 10_000_000
PERIODS, SETTLED = 80, 40
SLO_NS = 25_000


def spec_of() -> dict[str, Any]:
    spec: dict[str, Any] = prepare(
        "gateway", costs="prior", overrides={"saturate": "true"}, run_order="depth"
    ).spec
    spec["engine"]["idle"] = "hold"
    for flow in spec["flows"]:
        flow["delay_slo_ns"] = SLO_NS
    # Executions of the same batch differ by half.
    spec["simulation"]["noise"] = {"sigma": 0.5}
    return spec


def run(told: dict[str, Any] | None) -> tuple[float, int, float]:
    """Packets per period, the periods in which a flow was late, and how many different triggers
    there are in a period, on average."""
    sim = make_simulation(spec_of())
    sim.set_controller("optimal", {})
    if told is not None:
        sim.estimate_costs(told)
    pkts = late = different = 0
    for number in range(PERIODS):
        sim.run_until((number + 1) * PERIOD_NS)
        period, _ = sim.step()
        if number < SETTLED:
            continue
        pkts += int(period["tasks"]["in_pkts"][0])
        late += bool(is_slo_broken(period["flows"], DEFAULT_PERCENTILE).any())
        different += len(set(period["modules"]["trigger_pkts"]) - {0})
    return pkts / (PERIODS - SETTLED), late, different / (PERIODS - SETTLED)


@pytest.mark.parametrize(("batch", "pkt"), [(1.0, 1.0), (2.5, 0.5), (0.5, 2.0)])
def test_estimates_carry_what_known_costs_carry(batch: float, pkt: float) -> None:
    known, _, _ = run(None)
    told = {
        name: {
            "cost_per_batch_ns": batch * law["cost_per_batch_ns"],
            "cost_per_pkt_ns": pkt * law["cost_per_pkt_ns"],
        }
        for name, law in spec_of()["simulation"]["costs"].items()
    }
    carried, late, different = run(told)
    assert carried >= 0.97 * known
    assert late <= 1
    # Branches that cost the same are not told apart by chance: unequal triggers drift.
    assert different <= 1.2
