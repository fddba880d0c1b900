# SPDX-License-Identifier: BSD-3-Clause
"""Experiments on trees of subscribers: verdicts on made-up figures, and results in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.egress.models import full_tree, line_model
from batchplane.experiments.common.experiment import Outcome, Setup
from batchplane.experiments.egress import aqm, line, tree


def _outcome(module: Any) -> Outcome:
    plan = module.plan(Setup(is_quick=True))
    assert next(plan) == []
    with pytest.raises(StopIteration) as end:
        plan.send({})
    outcome: Outcome = end.value.value
    return outcome


def test_without_namespaces_the_model_alone_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aqm.line, "missing", lambda: "no namespaces")
    outcome = _outcome(aqm)
    assert {row["way"] for row in outcome.rows} == {"virtual time"}
    assert [v.verdict for v in outcome.verdicts] == ["same"] * 4 + ["different"]
    assert "no namespaces" in outcome.verdicts[-1].reason
    assert outcome.draw().axes


def test_lines_are_held_against_what_queues_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent of this machine: the figures are made up."""
    passed = {
        "tail drop, 1 MB": line.Passed(80, 82, 0.99, 0),
        "codel": line.Passed(5, 9, 0.99, 0),
        "fq_codel": line.Passed(0.1, 0.5, 0.99, 0),
        "policed, burst of 5 ms": line.Passed(0, 0.1, 0.8, 0),
        "policed, burst of 20 ms": line.Passed(0, 0.1, 0.9, 0),
    }
    monkeypatch.setattr(aqm.line, "missing", lambda: None)
    monkeypatch.setattr(aqm.line, "measure", lambda name, *_: passed[name])
    outcome = _outcome(aqm)
    assert [v.verdict for v in outcome.verdicts] == ["same"] * 6
    passed["codel"] = line.Passed(50, 60, 0.5, 0.3)
    outcome = _outcome(aqm)
    verdicts = [v for v in outcome.verdicts if v.verdict == "different"]
    assert len(verdicts) == 2
    assert all("30% of the time" in v.reason for v in verdicts)


def test_of_disturbed_runs_the_least_disturbed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def made_up(name: str, *_: float) -> line.Passed:
        asked.append(name)
        n = asked.count(name)
        return line.Passed(n, n, 1, {1: 0.5, 2: 0.1}.get(n, 0.3) if name == "codel" else 0)

    monkeypatch.setattr(aqm.line, "measure", made_up)
    rows = {row["line"]: row for row in aqm.measured(0, 0)}
    assert rows["codel"]["ping_p50_ms"] == 2 and rows["codel"]["waited"] == 0.1
    assert asked.count("codel") == 4 and asked.count("fq_codel") == 1


def test_marks_serve_as_drops_do() -> None:
    for queue, most_ms in (("codel", 15), ("fq_codel", 2)):
        result = line_model(queue, marks=True)
        assert result.ping_p95_ms < most_ms and result.goodput > 0.95


def _case(label: str, ratios: dict[str, Any], **ns: float) -> dict[str, Any]:
    contenders = [{"name": name, "ns_per_pkt_p10": value} for name, value in ns.items()]
    return {"label": label, "ratios": ratios, "contenders": contenders}


def test_costs_are_held_against_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent of this machine: the costs are made up."""
    reports = {
        "bench_egress_tree": {
            "cases": [
                _case("4000 x 4, 64 B", {}, shares=20.0),
                _case("4000 x 4, mixed", {}, shares=40.0),
                _case("100000 x 4, 64 B", {}, shares=60.0),
            ]
        },
        "bench_rte_sched": {
            "cases": [
                _case(
                    "4096 x 4",
                    {"tree": {"low": 2.5, "median": 2.6, "high": 2.7}},
                    rte_sched=45.0,
                    tree=17.0,
                )
            ]
        },
    }
    monkeypatch.setattr(tree, "missing", lambda: None)
    monkeypatch.setattr(tree, "run_program", lambda name, _: reports[name])
    outcome = _outcome(tree)
    verdicts = [v.verdict for v in outcome.verdicts]
    assert verdicts == ["different", "same", "same", "same", "same"]
    assert outcome.draw().axes
    monkeypatch.setattr(tree, "missing", lambda: "bench_rte_sched is not built")
    outcome = _outcome(tree)
    assert [v.verdict for v in outcome.verdicts] == ["different"] * 3 + ["same"] * 2
    assert "is not built" in outcome.verdicts[0].reason


def test_a_full_tree_sends_what_the_link_carries() -> None:
    first, second = full_tree(3, 8_000_000_000, 0, True, [1_000_000, 2_000_000])
    assert sum(first) == pytest.approx(1_000_000, abs=1500)
    assert sum(second) == pytest.approx(2_000_000, abs=1500)
