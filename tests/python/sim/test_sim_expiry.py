# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_expiry.py - age limits that come before triggers: buffers that expire together do not
stay together."""

from __future__ import annotations

from typing import Any

import pytest
from built import needs_daemon_and_extension

from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare

pytestmark = needs_daemon_and_extension

PERIOD_NS = 10_000_000
TRIGGER_PKTS = 20


def carried(sim: Any, n: int) -> tuple[float, int]:
    """Packets per ns, and the highest p95 of a flow."""
    pkts = worst_ns = 0
    for _ in range(n):
        sim.run_until(int(sim.now_ns) + PERIOD_NS)
        period, _ = sim.step()
        pkts += int(period["tasks"]["in_pkts"][0])
        worst_ns = max(worst_ns, *(int(delay_ns) for delay_ns in period["flows"]["delay_ns"]))
    return pkts / (n * PERIOD_NS), worst_ns


@pytest.mark.parametrize("share", [0.6, 0.7])
def test_buffers_that_expire_together_come_apart(share: float) -> None:
    spec = prepare(
        "gateway",
        costs="prior",
        overrides={"nexthops": "64", "saturate": "true"},
        run_order="depth",
    ).spec
    spec["engine"]["idle"] = "hold"
    sim = make_simulation(spec)
    sim.set_controller(f"fixed({TRIGGER_PKTS})", {})
    carried(sim, 3)
    rate, p95_ns = carried(sim, 3)
    limit_ns = int(share * p95_ns)
    controlled = [m for m, row in enumerate(sim.model()["modules"]) if row["is_controlled"]]
    limits = [
        {"module": m, "trigger_pkts": TRIGGER_PKTS, "age_limit_ns": limit_ns} for m in controlled
    ]
    sim.apply({"changes": limits})
    carried(sim, 3)
    limited_rate, limited_p95_ns = carried(sim, 5)
    # In step, all 64 leave in one run: that took 1.36 of a limit of 0.7.
    assert limited_p95_ns <= 1.3 * limit_ns
    assert limited_rate >= 0.98 * rate
