# SPDX-License-Identifier: BSD-3-Clause
"""test_run_order.py - the run order as a setting of simulations, and the experiment about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_experiment_beside import different, play

from batchplane import Simulation
from batchplane.base.problems import BadInput
from batchplane.experiments.beyond import run_order
from batchplane.experiments.common.case import Case
from batchplane.experiments.common.experiment import Setup
from batchplane.lang.check import daemon_check
from batchplane.lang.load import load_pipeline
from batchplane.native.loader import extension_path

needs_simulator = pytest.mark.skipif(extension_path() is None, reason="the simulator is not built")


ROOT = Path(__file__).resolve().parents[3]
DAEMON = ROOT / "build" / "batchplaned"
BULK = ("bulk_0", "bulk_1")


def robot(order: str | None, **params: Any) -> Simulation:
    return Simulation(
        "robot_control", costs="prior", run_order=order, sets=["idle=hold"],
        bulk_cycles=0, bulk_ns=4000, **params,
    )  # fmt: skip


def tight_p95_ns(sim: Simulation) -> float:
    flows = sim.run("20ms").flow_periods
    return float(flows[flows["flow"] == "robot"]["delay_ns"].iloc[-1])


@needs_simulator
def test_the_tight_flow_overtakes_by_deadline_only() -> None:
    by_depth = tight_p95_ns(robot(None, trigger=32))
    assert tight_p95_ns(robot("depth", trigger=32)) == by_depth
    assert tight_p95_ns(robot("deadline", trigger=32)) < 0.8 * by_depth


@needs_simulator
def test_an_slo_set_while_it_runs_moves_deadlines() -> None:
    # Two heavy flows without buffers: the one with less time left goes first.
    sim = Simulation(
        "heavy_branches", costs="prior", run_order="deadline", sets=["idle=hold"], heavy=2, tight=1
    )

    def p95_ns() -> tuple[float, float]:
        flows = sim.run("20ms").flow_periods
        last = {f: float(flows[flows["flow"] == f]["delay_ns"].iloc[-1]) for f in BULK}
        return last[BULK[0]], last[BULK[1]]

    sim.set("bulk_0.slo=10us")
    first, second = p95_ns()
    assert first < second
    sim.set("bulk_0.slo=100ms", "bulk_1.slo=10us")
    first, second = p95_ns()
    assert first > second


@needs_simulator
def test_every_packet_leaves_at_the_end() -> None:
    result = robot("deadline", trigger=32).run("5ms", is_drained=True)
    balance = result.report["balance"]
    assert balance["in_pkts"] == balance["sent_pkts"] > 10_000
    assert balance["held_pkts"] == balance["dropped_pkts"] == 0


def test_an_unknown_run_order_is_refused() -> None:
    with pytest.raises(BadInput, match="not a run order"):
        robot("edf")


@needs_simulator
@pytest.mark.skipif(not DAEMON.is_file(), reason="build/batchplaned is not there")
def test_a_daemon_refuses_what_only_a_simulation_does(tmp_path: Path) -> None:
    text = Path(ROOT, "pipelines", "simple.yaml").read_text()
    file = tmp_path / "simple.yaml"
    file.write_text(text + "\nengine: {run_order: deadline}\n")
    problems, _ = daemon_check(load_pipeline(str(file)), DAEMON)
    assert [problem.key for problem in problems] == ["engine.run_order"]
    assert "by deadline only simulations do" in problems[0].message
    # Its routes are known nevertheless.
    assert Simulation(str(file), costs="prior").run("1ms").rate_pps > 0


# --- the experiment -------------------------------------------------------------------------------


def answer(case: Case, gain: float) -> dict[str, Any]:
    """The delay grows with the load, `gain` times more slowly by deadline."""
    trigger = int(case.params["trigger"])
    max_pps = 1e6 * (trigger + 1)
    wanted_pps = float(case.params.get("rate_pps", max_pps))
    rate_pps = min(wanted_pps, max_pps)
    delay_ns = 1_000_000 if wanted_pps > max_pps else 5_000 + rate_pps / 1e3
    if case.run_order == "deadline":
        delay_ns /= gain
    n = case.warmup_periods + case.periods
    series = {"delay_ns": [delay_ns] * n, "delay_max_ns": [2 * delay_ns] * n}
    return {"rate_pps": rate_pps, "series": series}


def test_run_order_finds_the_best_load_at_each_slo() -> None:
    outcome = play(run_order.EXPERIMENT, Setup(is_quick=True), lambda case: answer(case, 1.5))
    assert different(outcome) == []
    for label in dict.fromkeys(row["pipeline"] for row in outcome.rows):
        rows = [row for row in outcome.rows if row["pipeline"] == label]
        assert [row["slo_ns"] is None for row in rows].count(True) == 1
        for order in run_order.ORDERS:
            rates = [row[f"{order}_pps"] or 0.0 for row in rows if row["slo_ns"] is not None]
            assert rates == sorted(rates)
            kept = [row for row in rows if row["slo_ns"] and row[f"{order}_pps"]]
            assert all(row[f"{order}_p95_ns"] <= row["slo_ns"] for row in kept)


def test_run_order_says_so_when_deadlines_bring_nothing() -> None:
    same = play(run_order.EXPERIMENT, Setup(is_quick=True), lambda case: answer(case, 1.0))
    assert different(same) == ["ours: at some SLO of each pipeline it is 1.2 times that by depth"]
    worse = play(run_order.EXPERIMENT, Setup(is_quick=True), lambda case: answer(case, 0.5))
    assert len(different(worse)) == 3
