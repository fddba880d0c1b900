# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_moves.py - parts of a simulated pipeline move between workers: by hand, by decision, by
rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batchplane import Machine, Simulation
from batchplane.base.problems import BadInput

PIPELINE = """
name: forked
workers: [{name: w0}, {name: w1}]
ports: {link: {kind: ring}}
generators: [{name: load, port: link, rate_pps: 2000000, flows: [{name: x, count: 2, dst_ip: 10.0.0.1, flow: 'f_{i}'}]}]
modules:
  in: {kind: port_in, port: link}
  fork: {kind: split, gates: 2}
  a: {kind: cost, cost_per_batch_ns: 100, cost_per_pkt_ns: 60}
  b: {kind: cost, cost_per_batch_ns: 100, cost_per_pkt_ns: 60, trigger: 8}
  out_a: {kind: sink}
  out_b: {kind: sink}
connect:
  - in -> fork
  - fork:0 -> a -> out_a
  - fork:1 -> b -> out_b
flows:
  - {name: f_0, path: [in, fork, a, out_a], delay_slo: 100us}
  - {name: f_1, path: [in, fork, b, out_b], delay_slo: 100us}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "forked.yaml"
    path.write_text(PIPELINE)
    return path


def workers(sim: Simulation) -> dict[str, str]:
    """The worker of each module."""
    rows = sim.show("runtime")["modules"]
    return {str(row["name"]): str(row["worker"]) for row in rows}


def test_a_part_moves_and_comes_back(pipeline: Path) -> None:
    sim = Simulation(pipeline)
    sim.run("5ms")
    sim.move({"b": "w1"})
    assert {workers(sim)[name] for name in ("b", "out_b")} == {"w1"}
    assert workers(sim)["a"] == "w0"
    assert [row["name"] for row in sim.model["modules"]][-1] == "b/in"
    result = sim.run("5ms", is_drained=False)
    assert result.rate_pps == pytest.approx(2e6, rel=0.02)
    sim.move({"b": "w0"})
    assert "b/in" not in workers(sim)
    report = sim.run("5ms", is_drained=True).report["balance"]
    assert report["is_exact"] and report["held_pkts"] == 0 and report["dropped_pkts"] == 0


def test_workers_stand_still_as_long_as_the_machine_says(pipeline: Path) -> None:
    longest_us = []
    for move_ns in (0, 300_000):
        sim = Simulation(pipeline, machine=Machine(move_ns=move_ns))
        sim.run("2ms")
        sim.move({"b": "w1"})
        longest_us.append(sim.run("2ms").flows["delay_max_ns"].max() / 1000)
    assert longest_us[0] < 100
    assert 300 <= longest_us[1] < 400


def test_a_part_can_be_elsewhere_from_the_start(pipeline: Path) -> None:
    there = pipeline.read_text().replace("trigger: 8}", "trigger: 8, worker: w1}")
    pipeline.write_text(there)
    sim = Simulation(pipeline)
    assert workers(sim)["out_b"] == "w1"
    assert sim.run("5ms").rate_pps == pytest.approx(2e6, rel=0.02)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"bb": "w1"}, "there is no module 'bb'"),
        ({"b": "w2"}, "there is no worker 'w2'"),
        ({"a": "w1", "bb": "w1"}, "there is no module 'bb'"),
    ],
)
def test_invalid_moves(pipeline: Path, parts: dict[str, str], told: str) -> None:
    sim = Simulation(pipeline)
    with pytest.raises(BadInput, match=told):
        sim.move(parts)
    assert set(workers(sim).values()) == {"w0"}
    sim.run("1ms")


class Mover:
    """Moves b away in the third period."""

    def __init__(self) -> None:
        self.n_steps = 0
        self.models: list[dict[str, Any]] = []

    def step(self, _period: Any) -> dict[str, Any] | None:
        self.n_steps += 1
        return {"changes": [], "moves": {"b": "w1"}} if self.n_steps == 3 else None

    def model_is(self, model: dict[str, Any]) -> None:
        """Called after the move."""
        self.models.append(model)


def test_a_controller_of_python_moves_a_part(pipeline: Path) -> None:
    sim = Simulation(pipeline)
    mover = Mover()
    result = sim.run("10ms", controller=mover, period="1ms")
    assert not result.faults
    assert len(mover.models) == 1
    assert workers(sim)["b"] == "w1"
    assert result.moves.to_dict("records") == [
        {"time_ns": 3_000_000, "module": "b", "worker": "w1", "reason": ""}
    ]
    frame = result.module_periods
    mine = frame[frame["module"] == "b/in"]
    assert len(mine) == 7 and mine["pkts"].min() > 0, "from its first period on"
    assert len(frame[frame["module"] == "b"]) == 10


class Confused:
    """Names a worker that does not exist."""

    def step(self, _period: Any) -> dict[str, Any]:
        return {"changes": [], "moves": {"b": "w7"}}


def test_an_invalid_move_is_a_fault(pipeline: Path) -> None:
    result = Simulation(pipeline).run("2ms", controller=Confused(), period="1ms")
    assert "there is no worker 'w7'" in result.faults[0].message


def test_a_full_worker_gives_a_part_away_and_gets_it_back(pipeline: Path) -> None:
    settings = {"decompose": "balance", "master_periods": 5}
    scenario = pipeline.with_name("rush.yaml")
    scenario.write_text("events:\n  - {at: 30ms, set: 'load.rate=1M'}\n")
    sim = Simulation(pipeline, sets=("load.rate=40M",), scenario=scenario)
    result = sim.run("80ms", controller="optimal", period="1ms", settings=settings)
    moves = result.moves
    assert list(moves["reason"]) == ["overload", "return"], moves
    assert moves["time_ns"][0] < 30_000_000 < moves["time_ns"][1]
    rates = result.periods.set_index("time_ns")["out_pps"]
    assert rates[29_000_000] > 1.2 * rates[3_000_000]


def test_the_rule_is_one_of_four(pipeline: Path) -> None:
    with pytest.raises(BadInput, match="off, greedy, normgreedy or balance"):
        Simulation(pipeline).run("1ms", controller="optimal", settings={"decompose": "greed"})


class Credits:
    """Halves the credit of the part's queue once."""

    def __init__(self, model: dict[str, Any]) -> None:
        self.at = next(i for i, row in enumerate(model["inputs"]) if row["is_queue"])
        self.told: list[int] = []

    def step(self, period: Any) -> dict[str, Any]:
        self.told.append(int(period["inputs"]["credit_pkts"][self.at]))
        return {"changes": [], "credits": [{"module": "b/in", "credit_pkts": 32}]}


def test_a_period_tells_the_credits_of_queues(pipeline: Path) -> None:
    sim = Simulation(pipeline)
    sim.move({"b": "w1"})
    controller = Credits(sim.model)
    result = sim.run("50ms", controller=controller)
    assert not result.faults
    assert controller.told[:3] == [64, 32, 32]
