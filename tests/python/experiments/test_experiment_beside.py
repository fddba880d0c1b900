# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment_beside.py - figures 1 and 3, table 1, rates and the SLO curve, on made-up
data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchplane.base.problems import BadInput
from batchplane.experiments.batchy import fig1, fig3, table1
from batchplane.experiments.beyond import rates, slo_curve
from batchplane.experiments.beyond.rates_claims import ROBOT_FULL_PPS
from batchplane.experiments.common import module_profile
from batchplane.experiments.common.case import Case
from batchplane.experiments.common.experiment import Experiment, Outcome, Setup
from batchplane.native.loader import extension_path

Answer = Callable[[Case], dict[str, Any]]


def play(experiment: Experiment, setup: Setup, answer: Answer) -> Outcome:
    """Runs the plan with an answer for each case, and draws its figure."""
    plan = experiment.plan(setup)
    cases = next(plan)
    while True:
        assert len({case.key for case in cases}) == len(cases)
        try:
            cases = plan.send({case.key: answer(case) for case in cases})
        except StopIteration as end:
            outcome: Outcome = end.value
            assert outcome.draw().axes
            for row in outcome.rows:
                assert all(text(row[key]) is not None for key, _, text in outcome.columns)
            return outcome


def different(outcome: Outcome) -> list[str]:
    return [verdict.claim for verdict in outcome.verdicts if verdict.verdict == "different"]


# --- modules --------------------------------------------------------------------------------------


def module(kind: str, per_batch: float, per_pkt: float, **more: Any) -> dict[str, Any]:
    return {
        "name": kind, "kind": kind, "cost_per_batch_ns": per_batch, "cost_per_pkt_ns": per_pkt,
        "r_squared": 0.999, "table_ns": [per_batch + per_pkt * n for n in range(1, 33)], **more,
    }  # fmt: skip


@pytest.fixture
def profile(tmp_path: Path) -> Callable[..., Setup]:
    """A setup with a profile of these modules."""

    def make(*modules: dict[str, Any]) -> Setup:
        path = tmp_path / "profile.json"
        path.write_text(json.dumps({"modules": list(modules)}))
        module_profile._profile.cache_clear()
        return Setup(str(path), True, True)

    return make


def nothing(case: Case) -> dict[str, Any]:
    raise AssertionError(f"{case.key} is run")


def test_gain_of_batches(profile: Callable[..., Setup]) -> None:
    # (60 + 20) x 32 over 60 + 20 x 32: 3.66 times.
    setup = profile(module("acl", 60, 20), module("ipv4_lookup", 60, 20), module("cost", 4000, 0))
    outcome = play(fig1.EXPERIMENT, setup, nothing)
    gains = {row["module"]: row["gain"] for row in outcome.rows}
    assert gains == {"acl": pytest.approx(80 * 32 / 700), "ipv4_lookup": gains["acl"], "cost": 32}
    assert outcome.rows[0]["rate_1_pps"] == pytest.approx(1e9 / 80)
    assert different(outcome) == []
    slow = play(fig1.EXPERIMENT, profile(module("acl", 1, 20)), nothing)
    assert different(slow) == ["batches of 32 bring 2 to 5 times the rate of single packets"]


def test_lines_and_batchiness(profile: Callable[..., Setup]) -> None:
    good = profile(module("acl", 60, 20), module("exact_match", 3, 1))
    outcome = play(fig3.EXPERIMENT, good, nothing)
    assert [row["batchiness"] for row in outcome.rows] == [0.25, 0.25]
    assert different(outcome) == []
    far_off = module("acl", 600, 200, r_squared=0.9, small_error_ratio=0.2)
    bent = play(fig3.EXPERIMENT, profile(far_off), nothing)
    assert len(different(bent)) == 3  # all except the batchiness
    told = play(
        fig3.EXPERIMENT,
        profile(module("acl", 60, 20, small_error_ratio=0.2, reason="caches")),
        nothing,
    )
    assert different(told) == []


def test_costs_without_times_draw_nothing(profile: Callable[..., Setup]) -> None:
    with pytest.raises(BadInput, match="no times of batch sizes"):
        play(fig1.EXPERIMENT, profile(module("acl", 60, 20, table_ns=[])), nothing)


# --- table 1 --------------------------------------------------------------------------------------


def test_response_times_of_a_daemon() -> None:
    def steps(case: Case) -> dict[str, Any]:
        n = int(case.params["n"])
        return {
            "median_controller_ns": 500 * n, "median_step_ns": 1500 * n, "p99_step_ns": 2000 * n
        }  # fmt: skip

    outcome = play(table1.EXPERIMENT, Setup(is_quick=True, is_measured=True), steps)
    last = outcome.rows[-1]
    assert (last["branches"], last["algorithm_ns"], last["total_ns"]) == (64, 32_000, 96_000)
    assert last["statistics_and_apply_ns"] == 64_000
    assert last["statistics_ns"] is None
    assert different(outcome) == []
    slow = play(
        table1.EXPERIMENT,
        Setup(is_quick=True, is_measured=True),
        lambda case: {key: 10 * value for key, value in steps(case).items()},
    )
    assert sorted(different(slow)) == [
        "ours: one step of optimal takes at most 50 us",
        "ours: statistics, step and apply take at most 200 us",
    ]


@pytest.mark.skipif(
    extension_path() is None,
    reason="NOT RUN: the extension is not built: tools/build.sh run native",
)
def test_steps_are_timed_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    ticks = iter(range(10**6))
    case = table1.make_case("optimal", 4, Setup(is_quick=True))
    spent = table1.timed_steps(case, lambda: next(ticks))
    assert {name: len(values) for name, values in spent.items()} == {
        "statistics": 20, "apply": 20, "whole": 20
    }  # fmt: skip
    assert {value for values in spent.values() for value in values} == {1}
    row = table1.stepped_row(
        "optimal", 4, {"statistics": [3] * 4, "apply": [2] * 4, "whole": [9] * 4}
    )
    assert (row["statistics_ns"], row["algorithm_ns"], row["apply_ns"]) == (3, 4, 2)
    assert row["total_ns"] == 9


# --- rates ----------------------------------------------------------------------------------------


def run(rate_pps: float, **more: Any) -> dict[str, Any]:
    return {
        "cpu": "Intel(R) Xeon(R)", "rate_pps": rate_pps, "batch_mean_pkts": 20.0,
        "delay_mean_of_periods_ns": 40_000.0, "violated_ratio": 0.0, "stalled_ratio": 0.1, **more,
    }  # fmt: skip


def good_rates(case: Case) -> dict[str, Any]:
    if case.pipeline == "robot_control":
        if case.controller == "null":
            return run(0.5e6, violated_ratio=1.0)
        return run(ROBOT_FULL_PPS)
    seed_pps = {1: -1e6, 2: 0.0, 3: 5e6}[case.seed]
    return run(22e6 + seed_pps)


def test_rates_beside_the_original() -> None:
    slos: dict[str, set[str]] = {}

    def answer(case: Case) -> dict[str, Any]:
        slos.setdefault(case.key.rpartition("/")[0], set()).update(case.sets)
        return good_rates(case)

    outcome = play(rates.EXPERIMENT, Setup(is_quick=True, is_measured=True), answer)
    by = {(row["pipeline"], row["slo"], row["controller"]): row for row in outcome.rows}
    ours = by["L2L3(16)", "the original's", "optimal"]
    assert (ours["rate_pps"], ours["rate_min_pps"], ours["rate_max_pps"]) == (22e6, 21e6, 27e6)
    assert ours["ratio"] == pytest.approx(22 / 7.0), "their full, on this kind of CPU"
    assert by["L2L3(16)", "the original's", "null"]["ratio"] == pytest.approx(22 / 5.6)
    assert "flow_*.slo=79000ns" in slos["L2L3(16)/optimal at the original's"]
    assert "flow_*.slo=32000ns" in slos["GW(64)/optimal at 80 %"]
    assert {"robot.slo=32000ns", "bulk_*.slo=32000ns"} <= slos["RC(16)/optimal at 80 %"]
    assert different(outcome) == []


def test_slow_or_late_rates_are_reported() -> None:
    def slow(case: Case) -> dict[str, Any]:
        if case.controller == "optimal":
            return {**good_rates(case), "rate_pps": 3e6, "violated_ratio": 0.1}
        return good_rates(case)

    outcome = play(rates.EXPERIMENT, Setup(is_measured=True), slow)
    assert len(different(outcome)) == len(outcome.verdicts) - 1  # null is late anyway


def test_robot_control_costs_what_its_slo_was_made_for() -> None:
    params = dict(rates.config_of("RC(16)").params)
    assert (params["bulk_cycles"], params["bulk_ns"], params["n"]) == (0, 4000, 16)


def test_the_kind_of_cpu_chooses_what_is_compared() -> None:
    original = rates.ORIGINALS[0]
    assert original.rates_pps("AMD EPYC")["full"] == 8.1e6
    assert original.rates_pps("Intel(R) Xeon(R)")["full"] == 7.0e6
    assert original.rates_pps("unknown")["full"] == 8.1e6


# --- rate against SLO -----------------------------------------------------------------------------


def curve(case: Case) -> dict[str, Any]:
    """Longer delays give higher rates, and each controller meets SLOs above its own delay."""
    delays = {"null": 10e3, "max": 60e3, "onoff": 12e3, "feasdir": 12e3, "full": 14e3}
    delay_ns = delays.get(case.controller, 10e3)
    slo_ns = 1e9
    for word in case.sets:
        if ".slo=" in word:
            slo_ns = float(word.partition("=")[2].removesuffix("ns"))
    rate = 1e6 + 1e5 * delay_ns / 10e3
    if case.controller == "optimal":
        delay_ns, rate = min(slo_ns, 60e3), 1e6 + 1e5 * min(slo_ns, 60e3) / 10e3
    late = 1.0 if delay_ns > slo_ns else 0.0
    return run(rate, delay_mean_of_periods_ns=delay_ns, violated_ratio=late)


def test_the_curve_goes_down_to_what_null_needs() -> None:
    outcome = play(slo_curve.EXPERIMENT, Setup(is_quick=True), curve)
    slos = sorted({row["slo_ns"] for row in outcome.rows})
    assert (slos[0], slos[-1], len(slos)) == (11_000, 62_400, 6)
    assert len(outcome.rows) == 3 * 6 * len(slo_curve.CONTROLLERS)
    kept = {(row["controller"], row["slo_ns"]): row["is_kept"] for row in outcome.rows}
    assert kept["max", 62_400] and not kept["max", slos[-2]]
    assert different(outcome) == []


def test_a_late_controller_is_not_compared_and_a_late_one_of_ours_is_reported() -> None:
    def late(case: Case) -> dict[str, Any]:
        found = curve(case)
        if case.controller == "optimal":
            found.update(violated_ratio=0.01, rate_pps=found["rate_pps"] * 0.9)
        return found

    claims = different(play(slo_curve.EXPERIMENT, Setup(is_quick=True), late))
    assert "ours: optimal violates at most 0.1 % of periods" in claims
    assert "ours: optimal carries the rate of the best that keeps the SLO (0.98)" in claims
