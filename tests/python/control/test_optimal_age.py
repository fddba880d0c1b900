# SPDX-License-Identifier: BSD-3-Clause
"""Age limits of `optimal` where one flow suddenly sends less: what is held leaves within the SLO, though its
task carries a load that nothing but batches makes bearable."""

from __future__ import annotations

from typing import Any

from built import needs_daemon_and_extension

from batchplane.experiments.common.case import NO_LIMIT, Case, inputs_of
from batchplane.experiments.common.measure import run_case

pytestmark = needs_daemon_and_extension

PERIOD_NS = 100_000_000
CHANGE_AFTER = 4  # periods
PERIODS = 8
USERS = 4
BULK_PPS = 1_850_000  # of flows without an SLO; more than is carried without batches
SLO_NS = 1_000_000


def weights(pps: int) -> tuple[str, str]:
    """Shares of the flows: bearer 0 of one user, and the other bearer of all, downlink and uplink."""
    of_direction = [pps, *[0] * (USERS - 1), *[BULK_PPS // (2 * USERS)] * USERS]
    both = [*of_direction, *of_direction]
    return f"load.rate={sum(both)}", f"load.weights={','.join(map(str, both))}"


def test_a_flow_that_sends_less_keeps_its_slo() -> None:
    before, after = weights(20_000), weights(5_000)
    at_ns = CHANGE_AFTER * PERIOD_NS
    case = Case(
        "one flow sends less",
        "mgw",
        "optimal",
        {"bearers": 2, "users": USERS, "bearer_cycles": 5000, "bearer_pkt_cycles": 100,
         "slo_ns": SLO_NS, "age_limit": NO_LIMIT},
        sets=("idle=hold", *before),
        events="events:\n" + "".join(f"  - {{at: {at_ns}ns, set: '{word}'}}\n" for word in after),
        period_ns=PERIOD_NS,
        periods=PERIODS,
        watched_module="dl_work_0_0",
        watched_flow="dl_0_0",
    )  # fmt: skip
    series = run_case(inputs_of(case), case)["series"]
    assert series["trigger_pkts"][CHANGE_AFTER] >= 10
    assert not any(series["is_violated"][CHANGE_AFTER:])
    assert max(series["delay_max_ns"][CHANGE_AFTER:]) <= SLO_NS


def test_limits_made_for_a_queue_keep_slos_when_nearly_all_traffic_stops() -> None:
    # Without batches 3 Mpps are not carried, so limits leave time for a full ring. They are still in
    # force when only a 300th of the load comes and no batch fills any more.
    rise, fall, periods = 3, 8, 10
    period_ns = 50_000_000
    case = Case(
        "a 300th of the load",
        "gateway",
        "optimal",
        {"branches": 4, "nexthops": 8, "fib_size": 1000, "age_limit": NO_LIMIT},
        sets=("idle=hold", "load.rate=200k", f"flow_*.slo={SLO_NS}ns"),
        events=(
            f"events:\n  - {{at: {rise * period_ns}ns, set: 'load.rate=3M'}}\n"
            f"  - {{at: {fall * period_ns}ns, set: 'load.rate=10k'}}\n"
        ),
        costs="paper",
        overflow="drop",
        period_ns=period_ns,
        periods=periods,
        watched_module="acl_0_0",
    )
    series = run_case(inputs_of(case), case)["series"]
    assert series["trigger_pkts"][fall] == 32
    assert series["busy_ratio"][fall - 1] > 0.95
    assert not any(series["is_violated"])
    assert max(series["worst_delay_ns"][fall:]) <= SLO_NS


def groups_of_a_trace(n: int, slo: str, seed: int = 1) -> dict[str, Any]:
    """A full ring of packets to n groups of addresses."""
    case = Case(
        "groups of a trace",
        "gateway",
        "optimal",
        {"nexthops": n, "saturate": True, "age_limit": NO_LIMIT},
        sets=("idle=hold", f"flow_*.slo={slo}"),
        costs="paper",
        warmup_periods=20,
        periods=100,
        seed=seed,
        trace={"kind": "backbone", "groups": n, "packets": 200_000},
    )
    return run_case(inputs_of(case), case)


def test_flows_of_few_packets_keep_slos_that_their_batches_need() -> None:
    # Some of 64 groups of addresses have 10 packets per SLO, in no order: chance fills their batches,
    # and many leave by age. With limits that are late by a run, half of the periods were.
    result = groups_of_a_trace(64, "632us")
    assert result["rate_pps"] > 4.8e6
    assert result["violated_ratio"] == 0
    assert result["late_pkts_ratio"] < 0.001


def test_limits_expect_that_flows_send_less_again() -> None:
    # Some groups send three times as much in one period as in the next: with limits that forget at once
    # how many batches left by age, a third of the periods are late.
    result = groups_of_a_trace(16, "118509ns", seed=6)
    assert result["rate_pps"] > 4.78e6
    assert result["violated_ratio"] < 0.2
