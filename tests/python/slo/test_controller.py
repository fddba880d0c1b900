# SPDX-License-Identifier: BSD-3-Clause
"""test_controller.py - the controllers as a library: decisions as in the simulator, and for a
program."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import Any, cast

import pytest
from built import needs_extension

from batchplane import BadInput, Controller, Machine, Meter, Simulation

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "library.md"
pytestmark = needs_extension

MODEL = {
    "batch_limit_pkts": 64,
    "modules": [{"name": "infer", "cost_per_batch_ns": 4e6, "cost_per_pkt_ns": 3e5}],
    "flows": [{"name": "requests", "path": ["infer"], "slo_ns": 8e7}],
}


# A machine that sometimes takes the worker away.
HOLES = Machine(stall_rate_per_s=300, stall_lengths_ns=(200_000,))


def simulated(controller: Any, pipeline: str, **params: Any) -> Any:
    sim = Simulation(pipeline, costs="prior", **params)
    sim.set("idle=hold", *(f"{flow['name']}.slo=100us" for flow in sim.model["flows"]))
    return sim.run("300ms", controller=Controller(sim.model) if controller is None else controller)


@pytest.mark.parametrize(
    ("pipeline", "params"),
    [
        ("gateway", {"nexthops": 16, "saturate": "true"}),
        ("gateway", {"nexthops": 4, "rate_pps": 2_000_000}),
        ("two_tasks", {}),  # with rings between them, and credits
        ("gateway", {"nexthops": 4, "rate_pps": 2_000_000, "machine": HOLES}),
    ],
)
def test_in_a_simulation_it_decides_as_optimal_does(pipeline: str, params: dict[str, Any]) -> None:
    own, library = simulated("optimal", pipeline, **params), simulated(None, pipeline, **params)
    assert not library.faults and own.module_periods["trigger_pkts"].max() > 1
    columns = ["time_ns", "module", "pkts", "trigger_pkts", "age_limit_ns"]
    assert own.module_periods[columns].equals(library.module_periods[columns])
    assert own.flow_periods.equals(library.flow_periods)


class Program:
    """One stage that gets an item at regular intervals and runs batches of its trigger."""

    def __init__(
        self, every_ns: int = 5_000_000, per_batch_ns: int = 4_000_000, per_pkt_ns: int = 300_000
    ):
        self.controller = Controller(MODEL)
        self.meter = Meter(MODEL)
        self._every_ns, self._per_batch_ns, self._per_pkt_ns = every_ns, per_batch_ns, per_pkt_ns
        self._now_ns = self._next_ns = 0
        self._came_ns: deque[int] = deque()

    def _take(self, until_ns: int) -> None:
        while self._next_ns <= until_ns:
            self.meter.entered("infer")
            self._came_ns.append(self._next_ns)
            self._next_ns += self._every_ns

    def period(self) -> dict[str, Any]:
        """Runs two seconds and the step after them."""
        end_ns = self._now_ns + 2_000_000_000
        while self._now_ns < end_ns:
            self._take(self._now_ns)
            size = max(1, self.controller.buffers["infer"]["trigger_pkts"])
            if len(self._came_ns) < size:
                self._now_ns = self._next_ns
                continue
            self.meter.began("infer", size, self._now_ns)
            self._now_ns += self._per_batch_ns + size * self._per_pkt_ns
            self._take(self._now_ns)
            self.meter.ended("infer", self._now_ns)
            for _ in range(size):
                self.meter.left("requests", self._now_ns - self._came_ns.popleft())
        return self.controller.step(self.meter.close(self._now_ns))


def test_what_waited_before_there_were_batches_is_no_reason_for_small_ones() -> None:
    program = Program(every_ns=2_000_000)
    states = [program.period()["flows"][0]["state"] for _ in range(6)]
    assert states[-1] == "met"
    assert program.controller.explain()["modules"][0]["trigger_pkts"] > 8


def test_batches_are_as_large_as_the_slo_lets_them_be() -> None:
    program = Program()
    decision = program.period()
    assert [change["module"] for change in decision["changes"]] == ["infer"]
    assert decision["flows"][0]["state"] == "met"
    for _ in range(10):
        decision = program.period()
    trigger_pkts = program.controller.buffers["infer"]["trigger_pkts"]
    # The first item of a batch waits for the others, then for its batch; together they use the SLO.
    whole_ns = (trigger_pkts - 1) * 5e6 + 4e6 + trigger_pkts * 3e5
    assert 0.7 * 8e7 < whole_ns < 8e7
    assert 0 < program.controller.buffers["infer"]["age_limit_ns"] < 8e7
    assert program.controller.explain()["modules"][0]["module"] == "infer"


def test_costs_follow_the_batches_that_ran() -> None:
    program = Program(per_batch_ns=8_000_000, per_pkt_ns=600_000)
    for _ in range(10):
        program.period()
    row = program.controller.explain()["modules"][0]
    n = row["trigger_pkts"]
    told_ns = row["cost_per_batch_ns"] + n * row["cost_per_pkt_ns"]
    assert told_ns == pytest.approx(8e6 + n * 6e5, rel=0.1)


def test_costs_that_a_period_tells_count() -> None:
    program = Program()
    program.period()
    period = program.meter.close(10**10)
    costs = {"cost_per_batch_ns": [7e6, 0], "cost_per_pkt_ns": [2e5, 0]}
    period["modules"] |= {**costs, "arrived_pkts": [400, 0], "arrived_batches": [400, 0], "pkts": [400, 400], "batches": [40, 0]}  # fmt: skip
    period["tasks"] |= {"in_pkts": [400], "runs": [400]}
    program.controller.step(period)
    assert program.controller.explain()["modules"][0]["cost_per_batch_ns"] == pytest.approx(7e6)


def test_mistakes() -> None:
    with pytest.raises(BadInput, match=re.escape("controller: no controller 'best'")):
        Controller(MODEL, name="best")
    with pytest.raises(BadInput, match=re.escape("settings: there is no setting 'percentil'")):
        Controller(MODEL, {"percentil": 0.9})
    with pytest.raises(BadInput, match=re.escape("batch_limit_pkts: no batch can be this large (1 to 256)")):  # fmt: skip
        Controller({**MODEL, "batch_limit_pkts": 1000})
    controller = Controller(MODEL)
    with pytest.raises(BadInput, match=r"period\.tasks: is missing"):
        controller.step({"now_ns": 1, "period_ns": 1, "modules": {}, "flows": {}})
    period = Meter(MODEL).close(10)
    period["modules"]["pkts"] = [1]
    with pytest.raises(BadInput, match=r"period\.modules\.pkts: has 1 rows, the model has 2"):
        controller.step(period)
    whole = controller.model
    with pytest.raises(BadInput, match=re.escape("flows.path: there is no such one (0 to 1)")):
        Controller({**whole, "flows": [{"name": "f", "path": [7]}]})

    for model in (None, [], {"modules": "x", "tasks": [], "flows": []}):
        with pytest.raises(BadInput):
            Controller(cast(Any, model))
    for period in (None, {"modules": None}, {**Meter(MODEL).close(10), "period_ns": -1}):
        with pytest.raises(BadInput):
            controller.step(cast(Any, period))
    tasks = [{**task, "inputs": task["inputs"] * 2} for task in whole["tasks"]]
    with pytest.raises(BadInput, match="at one input"):
        Meter({**whole, "tasks": tasks})
    with pytest.raises(BadInput, match="items arrived"):
        Meter(MODEL).arrived(str(MODEL["modules"][0]["name"]), -5)


@pytest.mark.parametrize("name", ["max", "onoff", "feasdir", "full+age", "primal(fixstep)"])
def test_columns_that_are_left_out_are_zero(name: str) -> None:
    controller = Controller(MODEL, name=name)
    controller.step({"now_ns": 1, "period_ns": 1, "modules": {}, "flows": {}, "tasks": {}})
    (flow,) = controller.explain()["flows"]
    assert flow["measured_ns"] == 0


def test_the_document_shows_what_works() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(compile(program, str(DOCUMENT), "exec"), names)
    triggers = {name: row["trigger_pkts"] for name, row in names["controller"].buffers.items()}
    assert set(triggers) == {"decode", "infer"} and max(triggers.values()) > 1
    assert names["decision"]["changes"]
