# SPDX-License-Identifier: BSD-3-Clause
"""The multicore paper's experiments in virtual time: their claims hold."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.experiments.common.case import Case, inputs_of
from batchplane.experiments.common.experiment import Outcome, Setup
from batchplane.experiments.common.measure import run_case
from batchplane.experiments.multicore import multi_fig5, multi_fig6, multi_table1, vrf_cores

SETUP = Setup(is_quick=True)


def _run(cases: list[Case]) -> dict[str, dict[str, Any]]:
    return {case.key: run_case(inputs_of(case), case) for case in cases}


def _outcome(module) -> Outcome:
    plan = module.plan(SETUP)
    with pytest.raises(StopIteration) as end:
        plan.send(_run(next(plan)))
    return end.value.value


def test_the_master_gives_the_splitters_surplus_to_the_second_core() -> None:
    outcome = _outcome(multi_fig5)
    assert [v.claim for v in outcome.verdicts if v.verdict == "different"] == []
    for row in outcome.rows:
        assert row["first_budget_ns"] + row["second_budget_ns"] == pytest.approx(28_000)
    assert outcome.draw().axes


def test_three_cores_carry_more_at_less_delay() -> None:
    runs = ("single core", "multicore", "optimal")
    cases = {run: vrf_cores.make_case(SETUP, run, vrf_cores.FREE) for run in runs}
    results = _run(list(cases.values()))
    rows = {
        run: vrf_cores.row_of(results, case, run, vrf_cores.FREE) for run, case in cases.items()
    }
    for run in ("multicore", "optimal"):
        assert rows[run]["rate_pps"] > 2.2 * rows["single core"]["rate_pps"]
        assert rows[run]["delay_ns"] < 0.75 * rows["single core"]["delay_ns"]
        assert rows[run]["violated_ratio"] == 0
    series = {run: results[case.key]["series"] for run, case in cases.items()}
    assert multi_fig6.draw(series).axes


def test_a_closed_loop_gives_the_papers_first_row_and_optimal_its_best() -> None:
    cases = {run: multi_table1.make_case(SETUP, run) for run in ("no batching", "optimal")}
    results = _run(list(cases.values()))
    rows = {run: multi_table1.row_of(results, case, run, 0) for run, case in cases.items()}
    pps, delay_us = multi_table1.PAPER["no batching"]
    assert rows["no batching"]["rate_pps"] == pytest.approx(pps * 1e6, rel=0.01)
    assert rows["no batching"]["delay_ns"] == pytest.approx(delay_us * 1e3, rel=0.02)
    assert rows["optimal"]["rate_pps"] > 1.33e6
    assert rows["optimal"]["delay_ns"] <= multi_table1.SLO_NS
    assert multi_table1.draw(list(rows.values())).axes
