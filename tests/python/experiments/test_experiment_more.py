# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment_more.py - replayed traffic, batches of up to 256, and experiments that use them."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from built import needs_extension
from rich.console import Console

from batchplane.base.problems import BadInput, RunFailed
from batchplane.changes.scenario import parse_scenario
from batchplane.costs.costs import load_costs
from batchplane.experiments import modes
from batchplane.experiments.batchy import fig8b, fig9b, fig9c, fig10, table2, table2_configs
from batchplane.experiments.batchy.table2_configs import CONFIGS, WFQ, Config, promises
from batchplane.experiments.beyond import batch_size
from batchplane.experiments.catalogue import EXPERIMENTS
from batchplane.experiments.common.case import Case
from batchplane.experiments.common.experiment import Experiment, Outcome, Setup
from batchplane.experiments.common.replay import columns_of, with_trace
from batchplane.experiments.common.store import Runner, Store, make_bar
from batchplane.experiments.modes import choose_modes
from batchplane.lang.load import load_pipeline

QUICK = Setup(is_quick=True)


@pytest.fixture(autouse=True)
def no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared flows determine the routes: no daemon program is needed."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))


def play(experiment: Experiment, setup: Setup, answer: Callable[[Case], dict[str, Any]]) -> Outcome:
    """The outcome if cases have the results of `answer`."""
    plan = experiment.plan(setup)
    cases = next(plan)
    while True:
        try:
            cases = plan.send({case.key: answer(case) for case in cases})
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome


def verdicts(outcome: Outcome) -> dict[str, str]:
    return {v.claim: v.verdict for v in outcome.verdicts}


def run(tmp_path: Path, cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    bar = make_bar(Console(file=io.StringIO()))
    return Runner(Store(tmp_path), 1, bar).run(cases)


# --- replayed traffic -----------------------------------------------------------------------------


def test_bursts_are_in_a_row_and_turns_are_whole() -> None:
    columns = columns_of({"kind": "bursts", "groups": 3, "burst": 2}, 1)
    assert columns["flow"][:8] == [0, 0, 1, 1, 2, 2, 0, 0]
    assert len(columns["flow"]) % 6 == 0 and len(columns["flow"]) >= 1024
    assert len(columns["time_ns"]) == len(columns["flow"])


def test_a_backbone_is_split_into_groups_of_about_the_same_weight() -> None:
    trace = {"kind": "backbone", "groups": 16, "packets": 30_000}
    columns = columns_of(trace, 1)
    assert len(columns["flow"]) == len(columns["size_bytes"]) == 30_000
    shares = [columns["flow"].count(i) / 30_000 for i in range(16)]
    assert sum(shares) == pytest.approx(1) and max(shares) < 0.35 and min(shares) > 0.01
    runs = 1 + sum(a != b for a, b in zip(columns["flow"], columns["flow"][1:], strict=False))
    assert 1.05 < 30_000 / runs < 1.6  # of a group; by chance, flows of one follow each other
    assert columns_of(trace, 1) == columns and columns_of(trace, 2) != columns


def test_more_groups_than_flows_are_refused() -> None:
    spec = {"generators": [{"name": "load"}], "simulation": {"routes": {"load": [{}, {}]}}}
    with pytest.raises(BadInput, match="'load' has 2 flows, and the trace 3 groups"):
        with_trace(spec, {"kind": "bursts", "groups": 3, "burst": 1}, 1)


@needs_extension
def test_long_bursts_make_large_batches_without_buffers(tmp_path: Path) -> None:
    def case(burst: int) -> Case:
        trace = {"kind": "bursts", "groups": 8, "burst": burst}
        return Case(str(burst), fig8b.pipeline(8), "null", trace=trace, periods=4)

    results = run(tmp_path, [case(1), case(8), case(32)])
    means = [results[key]["batch_mean_pkts"] for key in ("1", "8", "32")]
    assert means == pytest.approx([4, 8, 32], rel=0.01)
    assert results["32"]["rate_pps"] > 1.5 * results["1"]["rate_pps"]


# --- batches of up to 256 -------------------------------------------------------------------------


@needs_extension
@pytest.mark.parametrize("batch", [64, 128, 256])
def test_controllers_use_the_whole_of_a_larger_batch(tmp_path: Path, batch: int) -> None:
    params = {"leaves": 4, "saturate": True, "slo": "5ms", "age_limit": "1000s", "batch": batch}
    cases = [
        Case(name, "tree", name, params, sets=("idle=hold",), costs="wide", warmup_periods=10,
             periods=10)
        for name in ("null", "max", "full", "optimal", f"fixed({batch})")
    ]  # fmt: skip
    results = run(tmp_path, cases)
    assert results["max"]["batch_mean_pkts"] == pytest.approx(batch)
    assert results[f"fixed({batch})"]["batch_mean_pkts"] == pytest.approx(batch)
    assert results["optimal"]["batch_mean_pkts"] > 32
    assert results["optimal"]["rate_pps"] >= 0.98 * results["full"]["rate_pps"]
    assert results["optimal"]["violated_ratio"] == 0
    rates = [results[name]["rate_pps"] for name in ("null", "optimal")]
    assert rates[1] > rates[0]


def test_wide_costs_are_the_priors_up_to_32_and_then_what_caches_make() -> None:
    prior = {entry.kind: entry for entry in load_costs("prior").entries if not entry.port_kind}
    wide = {entry.kind: entry for entry in load_costs("wide").entries if not entry.port_kind}
    assert set(prior) == set(wide)
    rising = 0
    for kind, entry in wide.items():
        line, law = prior[kind].law, entry.law
        assert law.cost_per_batch_ns == line.cost_per_batch_ns
        if law.table_ns is None:
            continue
        assert len(law.table_ns) == 256
        assert law.at(32) == pytest.approx(line.at(32), abs=0.1)
        assert 0.6 * line.at(256) < law.at(256) < 1.7 * line.at(256)
        rising += law.at(256) > 1.03 * line.at(256)
    assert rising > 5


@pytest.mark.parametrize("name", ["gateway", "vrf", "l2l3", "tree", "robot_control"])
def test_pipelines_take_the_batch_size(name: str) -> None:
    for batch in (32, 256):
        built = load_pipeline(name, {"batch": str(batch)}).pipeline
        assert built["engine"]["batch_pkts"] == batch
        (port,) = built["ports"].values()
        assert port["params"]["size_pkts"] == 2 * batch


def test_the_best_batch_is_the_smallest_that_is_good_enough() -> None:
    rates = {32: 10.0, 64: 12.9, 128: 13.0, 256: 12.0}
    rows = [
        {"pipeline": "GW(64)", "slo_ns": 10**6, "batch_pkts": b, "rate_pps": r}
        for b, r in rates.items()
    ]
    assert batch_size.best(rows, "GW(64)", 10**6) == (64, 1.29)


def test_batch_size_judges_and_draws() -> None:
    def answer(case: Case) -> dict[str, Any]:
        assert case.costs == "wide"
        batch = case.params["batch"]
        late = case.controller == "optimal" and "200us" in case.sets[1] and batch == 256
        return {
            "rate_pps": 1e7 + 1e2 * batch,
            "batch_mean_pkts": batch / 2,
            "delay_mean_of_periods_ns": 1000.0 * batch,
            "violated_ratio": (0.5 if late else 0.0) if case.controller == "optimal" else None,
        }

    outcome = play(batch_size.EXPERIMENT, QUICK, answer)
    assert len(outcome.rows) == 2 * 4 * 7
    assert list(verdicts(outcome).values()) == ["different", "same", "same"]
    figure = outcome.draw()
    assert "32 at 0.2-5 ms" in figure.axes[0].get_title()
    measured = next(batch_size.EXPERIMENT.plan(Setup(is_quick=True, is_measured=True)))
    assert {case.costs for case in measured} == {"prior"}


# --- figures 8b and 9c ----------------------------------------------------------------------------


def test_fig8b_judges_gain_and_its_fading() -> None:
    def gain(case: Case, is_fading: bool) -> dict[str, Any]:
        n, burst = int(case.key.split("/")[0]), int(case.key.split("/")[1])
        speed = 1.0 if case.controller == "null" else max(1.0, n / (4 * burst if is_fading else 4))
        return {"rate_pps": 1e6 * speed, "batch_mean_pkts": 4.0}

    good = verdicts(play(fig8b.EXPERIMENT, QUICK, lambda case: gain(case, True)))
    assert set(good.values()) == {"same"}
    bad = verdicts(play(fig8b.EXPERIMENT, QUICK, lambda case: gain(case, False)))
    assert [claim for claim, word in bad.items() if word == "different"] == [
        claim for claim in bad if claim.startswith("the gain fades")
    ]
    outcome = play(fig8b.EXPERIMENT, QUICK, lambda case: gain(case, True))
    assert len(outcome.draw().axes) == 2


def test_fig9c_moves_one_bearer_only() -> None:
    rate, weights = fig9c.words(50)
    assert rate == "load.rate=2100000"
    shares = list(map(int, weights.partition("=")[2].split(",")))
    assert len(shares) == 64 and sum(shares) == 2_100_000
    assert (shares[0], shares[1], shares[16], shares[32]) == (50_000, 0, 62_500, 50_000)
    scenario = parse_scenario(fig9c.events(10**9), "events")
    assert len(scenario.events) == 10


def test_fig9c_judges_the_whole_run_and_what_follows_its_start() -> None:
    def answer(case: Case) -> dict[str, Any]:
        n, period_ns = case.periods, case.period_ns
        speed = 1 if case.controller == "null" else 4
        start = [i < 2 for i in range(n)]
        return {
            "busy_ratio": 1.0 / speed,
            "series": {
                "time_ns": [(i + 1) * period_ns for i in range(n)],
                "out_pps": [2e6] * n,
                "trigger_pkts": [8] * n,
                "delay_ns": [500_000] * n,
                "slo_ns": [1_000_000] * n,
                "is_violated": start,
                "worst_delay_ns": [50_000_000 if late else 900_000 for late in start],
            },
        }

    outcome = play(fig9c.EXPERIMENT, QUICK, answer)
    different = [v for v in outcome.verdicts if v.verdict == "different"]
    assert [v.claim for v in different] == [
        "ours: optimal violates no period of the whole run, its start included",
        "ours: optimal lets no single packet pass the SLO in the whole run",
    ]
    assert different[0].ours == "0.0% to 20%"
    assert len(outcome.draw().axes) == 3 and outcome.rows[0]["violated_in_all_ratio"] == 0.2


def test_what_needs_a_pipeline_is_left_out_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "has_pipeline", lambda name: name != "mgw")
    every = list(EXPERIMENTS.values())
    chosen, left_out = choose_modes(every, ["all"], False, ["prior"], True)
    assert "fig9c" not in {experiment.name for experiment, _ in chosen}
    assert left_out == ["fig9c is left out: there is no pipeline 'mgw'"]


# --- table 2 --------------------------------------------------------------------------------------


def test_traces_are_for_simulations_and_pipelines_for_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table2_configs, "has_pipeline", lambda name: name != "mgw")
    labels = [config.label for config in table2_configs.configs(QUICK)]
    assert "*GW(64)" in labels and not any(label.startswith("MGW") for label in labels)
    measured = table2_configs.configs(Setup(is_measured=True))
    assert len(measured) == 13 and not any(config.trace for config in measured)
    monkeypatch.setattr(table2_configs, "has_pipeline", lambda _: True)
    assert [c.label for c in table2_configs.configs(QUICK) if c.pipeline == "mgw"] == [
        f"MGW({n},4)" for n in (1, 2, 4, 8, 16)
    ]


def test_bearers_have_slos_by_number_and_the_last_has_none() -> None:
    by_label = {config.label: config for config in CONFIGS}
    assert promises(by_label["MGW(1,4)"], 100) == ("*_0.slo=100ns",)
    assert promises(by_label["MGW(4,4)"], 100) == (
        "*_0.slo=100ns", "*_1.slo=200ns", "*_2.slo=300ns",
    )  # fmt: skip
    assert promises(by_label["RC(16)"], 35_000) == ("robot.slo=35000ns",)


def test_wfq_is_a_way_to_run_and_no_controller() -> None:
    config = Config("GW(16)", "gateway", (("nexthops", 16),))
    case = table2.stage_case(config, QUICK, WFQ, 1)
    assert (case.controller, case.engine) == ("null", {"execution": {"mode": "wfq"}})
    assert case.key == "GW(16)/wfq/1"
    plain = table2.stage_case(config, QUICK, "full", 1)
    assert plain.engine == {} and dataclasses.replace(plain, key="x").key == "x"


def test_a_trace_is_compared_with_even_load_and_wfq_with_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = [c for c in CONFIGS if c.label in ("GW(16)", "*GW(16)")]
    monkeypatch.setattr(table2, "configs", lambda _: chosen)
    monkeypatch.setattr(table2, "executions", lambda: (WFQ,))

    def answer(case: Case) -> dict[str, Any]:
        speed = {"null": 1.0, WFQ: 1.0}.get(case.key.split("/")[1], 2.0)
        return {
            "modules": 3, "rate_pps": 1e6 * speed, "batch_mean_pkts": 8.0 * speed,
            "violated_ratio": 0.0, "excess_mean_ratio": 0.0, "excess_max_ratio": 0.0,
            "delay_mean_of_periods_ns": 50_000.0,
        }  # fmt: skip

    outcome = play(table2.EXPERIMENT, QUICK, answer)
    found = verdicts(outcome)
    (on_trace,) = [word for claim, word in found.items() if claim.startswith("a backbone's trace")]
    (on_wfq,) = [word for claim, word in found.items() if "WFQ" in claim]
    assert (on_trace, on_wfq) == ("same", "same")
    assert {row["controller"] for row in outcome.rows} >= {WFQ, "full", "full, delta 0.2"}
    assert json.dumps(outcome.rows)


@needs_extension
def test_a_case_that_fails_is_named(tmp_path: Path) -> None:
    trace = {"kind": "bursts", "groups": 9, "burst": 1}
    bad = Case("bad", fig8b.pipeline(2), "null", trace=trace, periods=2)
    with pytest.raises((BadInput, RunFailed), match="2 flows, and the trace 9 groups"):
        run(tmp_path, [bad])


@needs_extension
def test_full_comes_out_of_an_overload_in_front_of_a_small_ring(tmp_path: Path) -> None:
    setup = Setup("paper", is_quick=True)
    (case,) = (one for one in next(fig9b.plan(setup)) if one.controller == "full")
    case = dataclasses.replace(case, sets=("idle=hold", "load.rate=3500k", "flow_*.slo=1ms"))
    case = dataclasses.replace(case, events="", period_ns=10_000_000, periods=8)
    series = run(tmp_path, [case])[case.key]["series"]
    assert not any(series["is_violated"])
    assert series["out_pps"][-1] == pytest.approx(3.5e6, rel=0.01)


def test_little_load_of_fig10_is_judged_by_all_of_its_packets() -> None:
    def verdict(late_periods: int) -> str:
        """Of periods of two packets, one of them late in some."""
        begin, end = fig10.PARTS["little load"]
        late = [int(begin <= i < begin + late_periods) for i in range(end)]
        columns = {
            "delay_ns": [1] * end,
            "out_pps": [1.0] * end,
            "is_violated": [bool(n) for n in late],
            "pkts": [2] * end,
            "late_pkts": late,
        }
        outcome = play(fig10.EXPERIMENT, QUICK, lambda _: {"series": columns, "moves": []})
        return next(v for claim, v in verdicts(outcome).items() if "with the SLO kept" in claim)

    assert verdict(7) == "same"
    assert verdict(8) == "different"
