# SPDX-License-Identifier: BSD-3-Clause
"""test_poll_limits.py - how many packets a poll may take: in files, set live, decided in Python."""

from __future__ import annotations

from typing import Any

import pytest
from built import needs_daemon_and_extension, needs_extension
from conftest import load

from batchplane.base.problems import BadInput
from batchplane.changes.settings import parse_settings
from batchplane.lang.kinds import Kinds
from batchplane.lang.yaml_writer import to_yaml
from batchplane.native.check import check_document
from batchplane.sim.edits import edits_of_sets
from batchplane.sim.simulation import Simulation

PIPELINE = """\
engine: {batch_pkts: 64}
modules:
  in: {kind: source, INPUT}
  ttl: {kind: ttl, MODULE}
  out: {kind: sink}
connect:
  - in -> ttl -> out
"""


def pipeline(of_input: str, of_module: str = "trigger: 0") -> str:
    return PIPELINE.replace("INPUT", of_input).replace("MODULE", of_module)


def test_a_file_gives_an_input_its_limit(kinds: Kinds) -> None:
    document = load(pipeline("poll_pkts: 16"), kinds)
    assert document.problems == []
    assert document.pipeline["modules"]["in"]["poll_pkts"] == 16
    assert load(to_yaml(document.pipeline), kinds).pipeline["modules"]["in"]["poll_pkts"] == 16


@needs_extension
@pytest.mark.parametrize(
    ("of_input", "of_module", "line"),
    [
        ("poll_pkts: 0", "trigger: 0",
         "p.yaml:3: modules.in.poll_pkts: 0 is out of range: at least 1"),
        ("poll_pkts: 257", "trigger: 0",
         "p.yaml:3: modules.in.poll_pkts: 257 is out of range: at most 256"),
        ("poll_pkts: 65", "trigger: 0",
         "p.yaml:3: modules.in.poll_pkts: a poll of 65 is more than a batch (at most "
         "engine.batch_pkts = 64)"),
        ("worker: w0", "poll_pkts: 8",
         "p.yaml:4: modules.ttl.poll_pkts: a ttl is not polled (set poll_pkts at the input or "
         "queue that brings its packets)"),
    ],
)  # fmt: skip
def test_one_line_each(of_input: str, of_module: str, line: str, kinds: Kinds) -> None:
    document = load(pipeline(of_input, of_module), kinds)
    assert [problem.line() for problem in check_document(document, kinds)] == [line]


def test_set_live() -> None:
    names = {"module": ["in", "ttl"], "flow": [], "generator": [], "port": []}
    sets = parse_settings(["in.poll_pkts=8"], names)
    assert edits_of_sets(sets) == [{"polls": {"in": 8}}]
    for value, why in (("0", "out of range"), ("257", "out of range"), ("few", "not a number")):
        with pytest.raises(BadInput, match=why):
            parse_settings([f"in.poll_pkts={value}"], names)


class Small:
    """Decides the same for every task."""

    def __init__(self, model: dict[str, Any]) -> None:
        self.model = model
        self.told: list[int] = []

    def step(self, period: Any) -> dict[str, Any]:
        self.told.append(int(period["tasks"]["poll_pkts"][0]))
        return {"changes": [], "polls": [{"task": 0, "poll_pkts": 4}]}


@needs_daemon_and_extension
def test_a_simulation_applies_it() -> None:
    sim = Simulation("gateway", nexthops=2, saturate="true", costs="prior")
    sim.set("in.poll_pkts=8")
    sim.run("10ms", controller="none")
    assert sim.show("runtime")["inputs"][0]["poll_pkts"] == 8
    small = Small(sim.model)
    result = sim.run("50ms", controller=small)
    assert not result.faults
    assert small.told[:3] == [8, 4, 4]
    for word, why in (
        ("in.poll_pkts=33", "1 to engine.batch_pkts, 32"),
        ("acl_0_0.poll_pkts=4", "is not polled"),
    ):
        with pytest.raises(BadInput, match=why):
            sim.set(word)


@needs_daemon_and_extension
def test_polls_of_all_that_comes_are_no_sign_of_a_full_input() -> None:
    """Packets that come one by one fill polls of one, on a worker that has much time."""

    def triggers(poll_pkts: int) -> set[int]:
        simulation = Simulation("gateway", nexthops=16, rate_pps=1_000_000, costs="prior")
        simulation.set("idle=hold", "*.slo=25us", f"in.poll_pkts={poll_pkts}")
        simulation.run("300ms", controller="optimal")
        buffers = simulation.show("buffers")["buffers"]
        return {row["trigger_pkts"] for row in buffers if row["module"].startswith("acl_")}

    assert triggers(1) == triggers(32)
