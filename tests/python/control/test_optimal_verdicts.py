# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts on SLOs that leave no room: SLOs that are met are not called hopeless."""

from __future__ import annotations

from typing import Any

import pytest
from built import needs_daemon_and_extension

from batchplane.base.promise import DEFAULT_PERCENTILE, is_slo_broken
from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare

pytestmark = needs_daemon_and_extension

PERIOD_NS = 10_000_000
PERIODS = 12


def run(pipeline: str, slo_ns: int, controller: str) -> tuple[dict[str, Any], list[str]]:
    spec = prepare(pipeline, costs="prior", overrides={"saturate": "true"}, run_order="depth").spec
    spec["engine"]["idle"] = "hold"
    for flow in spec["flows"]:
        flow["delay_slo_ns"] = slo_ns
    sim = make_simulation(spec)
    sim.set_controller(controller, {})
    for k in range(PERIODS):
        sim.run_until((k + 1) * PERIOD_NS)
        period, _ = sim.step()
    return period["flows"], [str(flow["state"]) for flow in sim.explain()["flows"]]


@pytest.mark.parametrize("pipeline", ["gateway", "tree", "vrf"])
def test_slos_met_without_buffers_are_not_called_hopeless(pipeline: str) -> None:
    without, _ = run(pipeline, 10**9, "null")
    flows, states = run(pipeline, int(without["delay_ns"].max()), "optimal")
    assert not is_slo_broken(flows, DEFAULT_PERCENTILE).any()
    assert set(states) == {"met"}


# First buffers that do not pay are no answer where the plan with margins leaves a flow out.
def test_what_fits_without_margins_is_held() -> None:
    spec = prepare(
        "vrf",
        costs="wide",
        overrides={"vrfs": "16", "nexthops": "16", "batch": "128", "saturate": "true"},
    ).spec
    spec["engine"]["idle"] = "hold"
    for flow in spec["flows"]:
        flow["delay_slo_ns"] = 200_000
    in_pkts = {}
    for controller in ("null", "optimal"):
        sim = make_simulation(spec)
        sim.set_controller(controller, {})
        for k in range(6):
            sim.run_until((k + 1) * PERIOD_NS)
            period, _ = sim.step()
        assert not is_slo_broken(period["flows"], DEFAULT_PERCENTILE).any()
        in_pkts[controller] = int(period["tasks"]["in_pkts"][0])
    assert in_pkts["optimal"] >= 1.5 * in_pkts["null"]
