# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment_fairness.py - the fairness experiment: its pipelines, its claims, and a short
run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from built import needs_extension
from rich.console import Console

from batchplane.experiments.batchy import fairness, fig1
from batchplane.experiments.batchy.fairness import FACTORS, LOADS, MODES, RTC, WFQ
from batchplane.experiments.batchy.fairness_claims import claims
from batchplane.experiments.common.case import Case
from batchplane.experiments.common.experiment import Setup
from batchplane.experiments.common.store import Runner, Store, make_bar


def found(heavy_pps: float, light_pps: float, dropped: int = 0, **delays: float) -> dict[str, Any]:
    work = {"batches": 10, "pkts": 100, "dropped_pkts": 0}
    return {
        "rate_pps": heavy_pps + light_pps,
        "flows": {
            "heavy": {"rate_pps": heavy_pps, "delay_mean_ns": delays.get("heavy", 2e4)},
            "light": {"rate_pps": light_pps, "delay_mean_ns": delays.get("light", 1e4)},
        },
        "by_module": {"heavy": {**work, "dropped_pkts": dropped}, "light": work, "nf_0": work},
    }


def as_the_paper_has_it(case: Case) -> dict[str, Any]:
    """The results of run to completion and of weighted scheduling if all claims held."""
    part, *_, mode = case.key.split("/")
    if part == "chain":
        return {**found(1e6, 0.0), "rate_pps": 1e6 if mode == "RTC" else 8e5, "flows": {}}
    if part == "shares":
        _, what, factor, mode = case.key.split("/")
        times = int(factor) if what == "rate" else 1
        is_fair = mode != "WFQ" or factor == "1"
        return found(times * 1e6, 1e6 if is_fair else 2e6)
    _, factor, mode, load = case.key.split("/")
    waits = {"heavy": 3e4, "light": 2e4} if mode == "WFQ" else {}
    return found(1e6, 1e6, 50 if mode == "WFQ" and load == "full" else 0, **waits)


def outcome(answer: Any = as_the_paper_has_it) -> Any:
    plan = fairness.EXPERIMENT.plan(Setup())
    cases = next(plan)
    while True:
        try:
            cases = plan.send({case.key: answer(case) for case in cases})
        except StopIteration as end:
            return end.value


def test_claims_that_hold_and_the_figure() -> None:
    made = outcome()
    assert [v.verdict for v in made.verdicts if v.verdict == "different"] == []
    assert len(made.rows) == (3 * len(FACTORS) + len(FACTORS) * len(LOADS) + 1) * len(MODES)
    figure = made.draw()
    assert len(figure.axes) == 6
    heavy = next(r for r in made.rows if (r["part"], r["factor"], r["mode"]) == ("cost", 4, "RTC"))
    assert heavy["time_share"] == pytest.approx(0.8) and heavy["proportion"] == 1


@pytest.mark.parametrize(
    ("position", "wanted", "change"),
    [
        (0, {"part": "rate", "mode": "RTC"}, {"proportion": 0.8}),
        (1, {"part": "cost", "mode": "WFQ", "factor": 4}, {"proportion": 1.0}),
        (2, {"part": "cost", "mode": "WFQ, weights by hand"}, {"proportion": 0.5}),
        (3, {"part": "behind", "mode": "RTC", "load": 0.0}, {"late_drops": 0.1}),
        (4, {"part": "behind", "mode": "WFQ"}, {"late_drops": 0.0}),
        (5, {"part": "chain", "mode": "WFQ"}, {"rate_pps": 2e6}),
        (6, {"part": "behind", "mode": "WFQ", "load": 0.5}, {"heavy_delay_ns": 1.0}),
        (7, {"part": "behind", "mode": "WFQ", "load": 0.9}, {"light_delay_ns": 1.0}),
    ],
)
def test_each_claim_can_fail(position: int, wanted: dict[str, Any], change: dict[str, Any]) -> None:
    rows = outcome().rows
    for row in rows:
        if all(row[key] == value for key, value in wanted.items()):
            row |= change
    different = [i for i, v in enumerate(claims(rows)) if v.verdict == "different"]
    assert different == [position]


def test_weights_by_hand_are_rate_times_cost() -> None:
    by_hand = next(mode for mode in MODES if mode.is_weighted)
    text = fairness.pipeline(by_hand, 4, is_shared=True, weights=(2, 1))
    modules = json.loads(text)["modules"]
    assert {name: m.get("weight") for name, m in modules.items() if m.get("weight")} == {
        "shared": 2, "heavy": 8, "light": 1,
    }  # fmt: skip
    plain = json.loads(fairness.pipeline(WFQ, 4, is_shared=False, weights=(2, 1)))["modules"]
    assert plain["heavy"]["weight"] == plain["light"]["weight"] == 1 and "shared" not in plain


@needs_extension
def test_run_to_completion_delivers_as_offered_and_equal_weights_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    runner = Runner(Store(tmp_path), 1, make_bar(Console(file=io.StringIO())))
    cases = [fairness._shares_case(Setup(), "cost", 4, mode) for mode in (RTC, WFQ)]
    results = runner.run(cases)
    rates = [
        [results[case.key]["flows"][flow]["rate_pps"] for flow in ("heavy", "light")]
        for case in cases
    ]
    assert rates[0][0] == pytest.approx(rates[0][1], rel=0.02)
    assert rates[1][0] < 0.5 * rates[1][1]
    assert results[cases[1].key]["by_module"]["heavy"]["dropped_pkts"] > 0


@needs_extension
def test_a_module_of_given_costs_gains_from_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    module = {"kind": "acl", "cost_per_batch_ns": 900.0, "cost_per_pkt_ns": 100.0}
    runner = Runner(Store(tmp_path), 1, make_bar(Console(file=io.StringIO())))
    results = runner.run([fig1._case(module, n, Setup(costs="paper")) for n in (1, 32)])
    # The linear law alone would give 1 / 1000 ns and 32 / 4100 ns.
    assert 0.75e6 < results["acl/1"]["rate_pps"] < 1e6
    assert 5.5e6 < results["acl/32"]["rate_pps"] < 32 / 4100 * 1e9
