# SPDX-License-Identifier: BSD-3-Clause
"""Controllers that search the optimum must not learn from a temporary backlog: batches stay large.

Until the first step nothing is collected, so that more packets arrive than are carried; those that
waited outside leave late. Once the backlog is gone, all SLOs can be met, and are.
"""

from __future__ import annotations

import pytest
from built import needs_daemon_and_extension

from batchplane.base.promise import DEFAULT_PERCENTILE, is_slo_broken
from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare

pytestmark = needs_daemon_and_extension

PERIOD_NS = 10_000_000
PERIODS, CALM = 220, 200
MAX_VIOLATED = 0.005  # of periods
LOAD_PPS = 9_100_000  # 90 % of the rate of full batches, and 2.6 times the rate without batching
MIN_BATCH_PKTS = 20.0


@pytest.mark.parametrize(
    ("controller", "execution"), [("optimal", "run_to_completion"), ("wfq", "wfq")]
)
def test_slos_are_met_once_a_backlog_is_gone(controller: str, execution: str) -> None:
    spec = prepare(
        "tree",
        costs="prior",
        overrides={
            "leaves": "16",
            "weight_0": "2",
            "slo": "60us",
            "age_limit": "1000s",
            "rate_pps": str(LOAD_PPS),
            "execution": execution,
            "backpressure": "on" if execution == "wfq" else "off",
        },
        run_order="depth",
    ).spec
    spec["engine"]["idle"] = "hold"
    spec["engine"]["stranding_limit_ns"] = 10**12
    sim = make_simulation(spec)
    sim.set_controller(controller, {})
    waited = violated = 0
    batches = pkts = 0
    for k in range(PERIODS):
        sim.run_until((k + 1) * PERIOD_NS)
        period, _ = sim.step()
        flows, modules = period["flows"], period["modules"]
        is_late = bool(is_slo_broken(flows, DEFAULT_PERCENTILE).any())
        if k < PERIODS - CALM:
            waited += is_late
            continue
        violated += is_late
        is_leaf = modules["trigger_pkts"] + modules["pace_ns"] > 0
        batches += int(modules["batches"][is_leaf].sum())
        pkts += int(modules["pkts"][is_leaf].sum())
    assert waited >= 3
    assert violated <= MAX_VIOLATED * CALM
    assert pkts / batches > MIN_BATCH_PKTS
