# SPDX-License-Identifier: BSD-3-Clause
"""Whether `optimal` meets SLOs over many simulated periods of saturated pipelines.

SLOs are those of the papers' scripts, which are loose for these costs, and 80 % of the p95 delay
under `max`, which is tight.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from built import needs_daemon_and_extension

from batchplane.experiments.common.case import NO_LIMIT, Case, inputs_of
from batchplane.experiments.common.measure import run_case

pytestmark = needs_daemon_and_extension

PERIOD_NS = 10_000_000
SETTLED_PERIODS = 3  # by then the controller has converged
FEW_PERIODS = 60
MANY_PERIODS = 2000
MAX_VIOLATED = 0.005  # of many periods; of few, one period

SCRIPT_SLO_NS = {
    "robot_control": 35_000, "gateway": 119_000, "l2l3": 79_000, "vrf": 73_000,
}  # fmt: skip
PARAMS: dict[str, dict[str, Any]] = {
    "robot_control": {"n": 16},
    "gateway": {"nexthops": 16},
    "l2l3": {"nexthops": 16},
    "vrf": {"vrfs": 2, "nexthops": 4, "acl_last": 1},
}
FLOWS = {"robot_control": "robot"}


def case_of(
    pipeline: str, controller: str, costs: str, periods: int, slo_ns: int | None = None
) -> Case:
    """A saturated run whose evaluation starts with the period by which `optimal` has converged."""
    flow = FLOWS.get(pipeline, "flow_*")
    slo = (f"{flow}.slo={slo_ns}ns",) if slo_ns is not None else ()
    return Case(
        f"{pipeline}/{controller}",
        pipeline,
        controller,
        {**PARAMS[pipeline], "saturate": True, "age_limit": NO_LIMIT},
        sets=("idle=hold", *slo),
        costs=costs,
        period_ns=PERIOD_NS,
        warmup_periods=SETTLED_PERIODS,
        periods=periods,
        watched_flow="robot" if pipeline == "robot_control" else "flow_0_0",
    )


def run(case: Case) -> dict[str, Any]:
    return run_case(inputs_of(case), case)


def slo_of(pipeline: str, costs: str, is_script: bool) -> int:
    if is_script:
        return SCRIPT_SLO_NS[pipeline]
    p95_ns = run(case_of(pipeline, "max", costs, 10))["delay_mean_of_periods_ns"]
    return round(0.8 * p95_ns)


def check(pipeline: str, costs: str, is_script: bool, periods: int) -> None:
    slo_ns = slo_of(pipeline, costs, is_script)
    case = case_of(pipeline, "optimal", costs, periods, slo_ns)
    result = run(case)
    assert result["violated_ratio"] <= max(MAX_VIOLATED, 1 / periods)
    # Within 5 % of its final rate for five periods, from the third period on.
    rates = result["series"]["out_pps"]
    final = fmean(rates[-10:])
    for rate in rates[SETTLED_PERIODS : SETTLED_PERIODS + 5]:
        assert rate == pytest.approx(final, rel=0.05)
    null = run(replace(case, controller="null", periods=10))
    assert result["rate_pps"] >= 0.98 * null["rate_pps"]


CASES = [
    (pipeline, costs, is_script)
    for pipeline in PARAMS
    for costs in ("prior", "paper")
    # Only one of robot_control's flows has an SLO, which max meets easily: no 80 % of it.
    for is_script in ((True,) if pipeline == "robot_control" else (True, False))
]


@pytest.mark.parametrize(("pipeline", "costs", "is_script"), CASES)
def test_slos_are_met_over_some_periods(pipeline: str, costs: str, is_script: bool) -> None:
    check(pipeline, costs, is_script, FEW_PERIODS)


@pytest.mark.long
@pytest.mark.parametrize(("pipeline", "costs", "is_script"), CASES)
def test_slos_are_met_over_many_periods(pipeline: str, costs: str, is_script: bool) -> None:
    check(pipeline, costs, is_script, MANY_PERIODS)
