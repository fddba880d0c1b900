# SPDX-License-Identifier: BSD-3-Clause
"""PSPAT's experiments in virtual time: their claims hold, and their loads are as described."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchplane.base.percentile import percentile
from batchplane.egress.replay import costs_ns
from batchplane.egress.virtual import FlatOut, flat_out_mpps
from batchplane.experiments.common.case import inputs_of
from batchplane.experiments.common.experiment import Outcome, Setup
from batchplane.experiments.common.measure import run_case
from batchplane.experiments.pspat import (
    algorithms,
    budget,
    bus,
    device,
    dispatch,
    kernel,
    latency,
    overload,
    shares,
    throughput,
)
from batchplane.experiments.pspat.watched import Watched, latencies_pkts
from batchplane.lang.load import load_pipeline


def _outcome(module) -> Outcome:
    plan = module.plan(Setup(is_quick=True))
    assert next(plan) == []
    with pytest.raises(StopIteration) as end:
        plan.send({})
    return end.value.value


@pytest.mark.parametrize("module", [latency, shares, bus])
def test_claims_hold(module) -> None:
    outcome = _outcome(module)
    assert outcome.rows
    assert [v.claim for v in outcome.verdicts if v.verdict == "different"] == []
    assert outcome.draw().axes


def test_one_budget_over_buffers_and_a_scheduler() -> None:
    plan = budget.plan(Setup(is_quick=True))
    cases = next(plan)
    with pytest.raises(StopIteration) as end:
        plan.send({case.key: run_case(inputs_of(case), case) for case in cases})
    outcome = end.value.value
    assert [v.claim for v in outcome.verdicts if v.verdict == "different"] == []
    assert outcome.draw().axes


def test_costs_are_held_against_the_slides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent of this machine: the costs are made up."""
    made_up = {"drr": 19.0, "wf2q_plus": 90.0, "qfq": 60.0, "qfq_plus": 48.0}
    monkeypatch.setattr(algorithms, "costs_ns", lambda name, *_: [made_up[name]] * 4)
    outcome = _outcome(algorithms)
    verdicts = [verdict.verdict for verdict in outcome.verdicts]
    assert verdicts == ["same", "different", "same", "same", "same", "same"]
    assert len(outcome.rows) == 4 * 4 * 4
    assert len(outcome.draw().axes) == 4


def test_costs_are_measured() -> None:
    for name in algorithms.DISCIPLINES:
        times = costs_ns(name, 32, False, True, 3)
        assert len(times) == 3
        assert min(times) > 0


def test_without_a_scheduler_a_flow_waits_for_the_queues_of_all_others() -> None:
    load = Watched(50, 32)
    waits = latencies_pkts("fifo", load, 2000)
    assert len(waits) == 2000
    # Three packets of each of 32 others, and the watched packet itself.
    assert 90 <= percentile(waits, 0.5) <= 150


def test_a_flow_beyond_its_share_is_not_protected() -> None:
    over = latencies_pkts("qfq", Watched(50, 32, part_of_share=1.2), 2000)
    within = latencies_pkts("qfq", Watched(50, 32, part_of_share=0.5), 2000)
    assert over[-1] > 20 * within[-1]


def test_an_overloaded_scheduler_keeps_a_flow_that_keeps_its_share() -> None:
    outcome = _outcome(overload)
    verdicts = {verdict.claim: verdict.verdict for verdict in outcome.verdicts}
    assert verdicts.pop("its p99 stays (10 %)") == "different"
    assert set(verdicts.values()) == {"same"}
    # Without weights the flow waits for everything that the others have queued.
    p99 = {(row["scheduler"], row["load"]): row["p99_us"] for row in outcome.rows}
    assert p99["fifo", 2] > 20 * p99["qfq", 2]
    assert outcome.draw().axes


def test_rates_are_held_against_the_slides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent of this machine: the rates are made up."""

    def made_up(what: FlatOut, _run_ms: int) -> float:
        base = 36.0 if what.discipline == "drr" else 30.0
        return base / (1 if what.way == "arbiter" else 1 + what.clients)

    monkeypatch.setattr(throughput, "flat_out_mpps", made_up)
    monkeypatch.setattr(throughput.kernel, "missing", lambda: "not here")
    outcome = _outcome(throughput)
    assert [verdict.verdict for verdict in outcome.verdicts] == ["same"] * 5
    assert len(outcome.rows) == 4 * 5
    assert outcome.draw().axes
    monkeypatch.setattr(
        dispatch, "flat_out_mpps", lambda what, _: 20.0 - what.dispatchers + what.dispatch_pkts / 10
    )
    monkeypatch.setattr(dispatch.kernel, "missing", lambda: "not here")
    outcome = _outcome(dispatch)
    assert [v.verdict for v in outcome.verdicts] == ["same", "same", "same", "same"]
    assert len(outcome.rows) == 2 * (1 + 2 * 5)
    assert outcome.draw().axes


def test_dispatchers_to_a_device_are_judged() -> None:
    rates = {
        (device.SINK, n, batch): [0.5 + 0.1 * n + batch / 100]
        for n in (0, 1)
        for batch in dispatch.BATCHES
    }
    verdicts = dispatch.device_claims(dispatch.rows_of(rates))
    assert [verdict.verdict for verdict in verdicts] == ["same", "same"]
    rates[device.SINK, 1, 256] = [0.4]
    verdicts = dispatch.device_claims(dispatch.rows_of(rates))
    assert [verdict.verdict for verdict in verdicts] == ["different", "different"]


@pytest.mark.parametrize("dispatchers", device.DISPATCHERS)
def test_what_sends_to_a_device_is_a_pipeline(dispatchers: int, tmp_path: Path) -> None:
    file = tmp_path / "io.yaml"
    file.write_text(device.pipeline(dispatchers, 8))
    made = load_pipeline(file).pipeline
    assert ("dispatcher" in made["modules"]) == bool(dispatchers)
    assert len(made["workers"]) == 1 + dispatchers


@pytest.mark.parametrize("way", ["arbiter", "lock", "alone"])
def test_rates_are_measured(way: str) -> None:
    assert flat_out_mpps(FlatOut(way, "qfq", clients=2, dispatchers=way == "arbiter"), 2) > 0


def test_the_kernels_rates_are_held_against_the_slides() -> None:
    rates = {"kernel, no qdisc": 1.5, "kernel, pfifo": 1.4, "kernel, HTB": 0.8}
    rows = [{"way": w, "clients": n, "mpps": r} for w, r in rates.items() for n in (1, 2, 3)]
    verdicts = throughput.kernel_claims(rows, [0.45, 0.3, 0.25])
    assert [verdict.verdict for verdict in verdicts] == ["same"] * 3
    verdicts = throughput.kernel_claims(rows, [0.8, 0.1, 0.1])
    assert [verdict.verdict for verdict in verdicts] == ["same", "same", "different"]


@pytest.mark.skipif(kernel.missing() is not None, reason=f"{kernel.missing()}")
def test_the_kernel_is_measured() -> None:
    # On a busy machine nothing may leave within a few milliseconds.
    for run_ms in (5, 100, 2000):
        rows, shares = throughput.measure_kernel(1, run_ms)
        if all(row["mpps"] > 0 for row in rows):
            break
    assert {row["way"] for row in rows} == {"kernel, no qdisc", "kernel, pfifo", "kernel, HTB"}
    assert all(row["mpps"] > 0 for row in rows)
    assert sum(shares) == pytest.approx(1)
