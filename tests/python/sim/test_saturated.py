# SPDX-License-Identifier: BSD-3-Clause
"""test_saturated.py - traffic for inputs that never run empty, especially real ports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from built import needs_extension
from conftest import load

from batchplane.sim.prepare import Inputs, prepare
from batchplane.sim.saturated import SATURATED, saturated
from batchplane.sim.simulation import Simulation

TEXT = """\
name: two
ports: {lan: {kind: af_packet, interface: lan0}, wan: {kind: af_packet, interface: wan0}}
modules:
  in_lan: {kind: port_in, port: lan}
  in_wan: {kind: port_in, port: wan}
  type: {kind: ether_type, rules: [{ether_type: ipv4, gate: 0}, {ether_type: arp, gate: 1}]}
  out_lan: {kind: port_out, port: lan}
  out_wan: {kind: port_out, port: wan}
  lost: {kind: drop}
connect: [in_lan -> type, in_wan -> out_lan, "type:0 -> out_wan", "type:1 -> lost"]
"""
DECLARED = (
    TEXT.replace("kind: drop", "kind: sink")
    + "flows: [{name: arp, path: [in_lan, 'type:1', lost]}]\n"
)
MADE = """\
name: made
ports: {a: {kind: ring, size_pkts: 64}, b: {kind: ring, size_pkts: 64}}
generators: [{name: load, port: a, rate_pps: 1000, flows: [{name: x, count: 3}]}]
workers: [{name: front}, {name: back}]
modules:
  in: {kind: port_in, port: a}
  out: {kind: port_out, port: b}
  again: {kind: port_in, port: b, worker: back}
  end: {kind: sink, worker: back}
connect: [in -> out, again -> end]
"""


def inputs_of(text: str, traffic: str | None = None) -> Inputs:
    document = load(text)
    law = {"cost_per_batch_ns": 100.0, "cost_per_pkt_ns": 10.0}
    return prepare(document, traffic, dict.fromkeys(document.pipeline["modules"], law))


@needs_extension
def test_without_declared_flows_packets_go_to_every_output() -> None:
    """None goes to outputs that only drop; the assumption is one line, unless it was requested."""
    inputs = inputs_of(TEXT)
    routes = inputs.spec["simulation"]["routes"]
    ways = {entry["name"]: entry["gates"] for found in routes.values() for entry in found}
    assert ways == {"in_lan_to_out_wan": {"type": 0}, "in_wan_to_out_lan": {}}
    (told,) = inputs.warnings
    assert "lan (af_packet) and wan (af_packet)" in told and "in_lan_to_out_wan" in told
    assert inputs_of(TEXT, SATURATED).warnings == ()
    result = Simulation(inputs).run("1ms")
    balance = result.report["balance"]
    assert balance["is_exact"] and balance["dropped_pkts"] == 0
    counts = {row["module"]: row["taken_pkts"] for row in result.last["runtime"]["inputs"]}
    assert counts["in_lan"] > 1000 and counts["in_wan"] > 1000


@needs_extension
def test_declared_flows_say_what_comes_in() -> None:
    inputs = inputs_of(DECLARED)
    assert inputs.spec["simulation"]["routes"] == {
        "lan": [{"name": "arp", "gates": {"type": 1}, **shares(inputs, "lan")}],
        "wan": [{"name": "in_wan_to_out_lan", "gates": {}, **shares(inputs, "wan")}],
    }


def shares(inputs: Inputs, source: str) -> dict[str, float]:
    (row,) = inputs.spec["simulation"]["routes"][source]
    return {key: row[key] for key in ("weight", "rate_pps", "size_bytes")}


def test_generators_keep_their_flows_and_their_rings() -> None:
    """Only their rate is removed; a ring between parts of the pipeline is not an input."""
    document = load(MADE)
    always = saturated(document)
    assert [entry["name"] for entry in always.traffic.generators] == ["load"]
    assert always.traffic.generators[0]["params"] == {"saturate": True}
    assert always.document.pipeline["ports"] == document.pipeline["ports"]


@needs_extension
@pytest.mark.parametrize("batch_pkts", [8, 32])
def test_ports_hold_two_batches(batch_pkts: int) -> None:
    """Packets waiting in a full kernel ring would count as the pipeline's delay."""
    inputs = inputs_of(f"engine: {{batch_pkts: {batch_pkts}}}\n" + TEXT)
    assert inputs.document.pipeline["ports"]["lan"] == {
        "kind": "ring", "params": {"size_pkts": 2 * batch_pkts}
    }  # fmt: skip


BEHIND = """\
events:
  - {at: 15ms, cost: in_lan, times: 10}
"""


@needs_extension
def test_controllers_see_what_inputs_cost(tmp_path: Path) -> None:
    """Polls of inputs are sampled: the estimate follows an input that takes ten times as long."""
    scenario = tmp_path / "slow.yaml"
    scenario.write_text(BEHIND)
    document = load(TEXT)
    law = {"cost_per_batch_ns": 100.0, "cost_per_pkt_ns": 10.0}
    costs = dict.fromkeys(document.pipeline["modules"], law)
    seen = []

    class Watch:
        def step(self, period: Any) -> None:
            seen.append(period["modules"]["cost_per_pkt_ns"])

    simulation = Simulation(document, costs=costs, scenario=scenario)
    simulation.run("400ms", controller=Watch())
    names = list(document.pipeline["modules"])
    lan, wan = names.index("in_lan"), names.index("in_wan")
    assert seen[0][lan] == pytest.approx(10, rel=0.01)
    assert seen[-1][lan] == pytest.approx(100, rel=0.05)
    assert seen[-1][wan] == pytest.approx(10, rel=0.01)
