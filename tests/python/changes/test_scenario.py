# SPDX-License-Identifier: BSD-3-Clause
"""test_scenario.py - scenario files: every mistake with its line, patterns resolved, flows that stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import load

from batchplane.base.problems import BadInput
from batchplane.changes.events import Action, CostChange, resolve_scenario
from batchplane.changes.play import new_cost, warnings_for_daemon
from batchplane.changes.scenario import parse_scenario
from batchplane.sim.edits import edits_of_action

PIPELINE = """\
name: two
ports: {link: {kind: ring}}
generators:
  - name: load
    port: link
    rate_pps: 400000
    flows: [{name: a, count: 3}, {name: b}, {name: own, rate_pps: 1000}]
modules:
  in: {kind: port_in, port: link}
  split: {kind: split, gates: 2}
  nf_0: {kind: cost, cost_per_batch_ns: 100}
  nf_1: {kind: cost, cost_per_batch_ns: 100}
  out: {kind: sink}
connect: [in -> split -> nf_0 -> out, "split:1 -> nf_1 -> out"]
flows:
  - {name: f_0, path: [in, split, nf_0, out], delay_slo: 1ms}
  - {name: f_1, path: [in, split, nf_1, out]}
"""


@pytest.fixture
def pipeline() -> dict[str, Any]:
    return load(PIPELINE).pipeline


def resolve(text: str, pipeline: dict[str, Any], file: str = "s.yaml") -> list[Action]:
    return resolve_scenario(parse_scenario(text, file), pipeline)


def one(event: str, pipeline: dict[str, Any]) -> Action:
    (action,) = resolve(f"events:\n  - {event}\n", pipeline)
    return action


def refusals(text: str, pipeline: dict[str, Any]) -> list[str]:
    with pytest.raises(BadInput) as refused:
        resolve(text, pipeline)
    assert refused.value.exit_code == 2
    return refused.value.lines()


def test_events_come_in_order_of_time_with_params_and_repeats(pipeline: dict[str, Any]) -> None:
    text = """\
params: {rate: 5M}
duration: 3s
events:
  - {at: 2s, set: idle=hold}
  - repeat: {as: i, count: 2}
    value: {at: "${500 + i * 100}ms", set: "load.rate=${rate}"}
"""
    scenario = parse_scenario(text, "s.yaml")
    assert (scenario.name, scenario.duration_ns) == ("s", 3_000_000_000)
    actions = resolve_scenario(scenario, pipeline)
    assert [action.at_ns for action in actions] == [500_000_000, 600_000_000, 2_000_000_000]
    assert actions[0].sets == ({"what": "generator", "rate_pps": 5_000_000, "name": "load"},)
    assert actions[2].where == "s.yaml:4"


def test_patterns_become_names(pipeline: dict[str, Any]) -> None:
    action = one("{at: 1s, set: [nf_*.trigger=8, f_0.slo=80us]}", pipeline)
    assert [change.get("module") for change in action.sets] == ["nf_0", "nf_1", None]
    assert action.sets[2]["delay_slo_ns"] == 80_000
    assert one("{at: 0, stall: w*, for: 500us}", pipeline).stall_ns == {"w0": 500_000}
    assert set(one("{at: 0, cost: nf_*, times: 2}", pipeline).costs) == {"nf_0", "nf_1"}


def test_a_traffic_flow_that_stops_takes_its_share_away(pipeline: dict[str, Any]) -> None:
    stopped, again, own = resolve(
        """\
events:
  - {at: 1s, stop: load/a_1}
  - {at: 2s, start: load/a_1}
  - {at: 3s, stop: load/own}
""",
        pipeline,
    )
    assert stopped.sets == (
        {
            "what": "generator",
            "name": "load",
            "weights": [1.0, 0.0, 1.0, 1.0, 0.0],
            "rate_pps": 300_000.0,
        },
    )
    assert again.sets[0]["weights"] == [1.0, 1.0, 1.0, 1.0, 0.0]
    assert again.sets[0]["rate_pps"] == 400_000.0
    assert own.sets == ({"what": "generator", "name": "load", "flow": "own", "rate_pps": 0.0},)


def test_a_rate_set_while_flows_are_off_applies_to_the_others(
    pipeline: dict[str, Any],
) -> None:
    *_, again = resolve(
        """\
events:
  - {at: 1s, stop: "load/a_*"}
  - {at: 2s, set: load.rate=50000}
  - {at: 3s, start: "load/a_*"}
""",
        pipeline,
    )
    assert again.sets[0]["rate_pps"] == 200_000.0


def test_when_all_flows_stop_the_generator_does(pipeline: dict[str, Any]) -> None:
    stop, start = resolve(
        'events:\n  - {at: 1s, stop: "load/*"}\n  - {at: 2s, start: "load/*"}\n', pipeline
    )
    assert stop.sets[-1] == {"what": "generator", "name": "load", "is_on": False}
    assert {"what": "generator", "name": "load", "rate_pps": 0.0} in stop.sets
    assert start.sets[-1] == {"what": "generator", "name": "load", "is_on": True}
    assert start.sets[-2]["rate_pps"] == 400_000.0


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ("{at: 1s, set: load.rat=4M}", "s.yaml:2: load.rat: unknown setting 'rat' (did you mean 'rate'?)"),
        ("{at: 1s, set: nf_2.trigger=4}", "s.yaml:2: nf_2.trigger=4: there is no module 'nf_2' (did you mean 'nf_0'?)"),
        ("{at: 1s, stop: lod}", "s.yaml:2: there is no generator 'lod' (did you mean 'load'?)"),
        ("{at: 1s, stop: load/xyz}", "s.yaml:2: there is no traffic flow 'xyz' (one of: a_0, a_1, a_2, b, own)"),
        ("{at: 1s, stall: w7, for: 1ms}", "s.yaml:2: there is no worker 'w7' (did you mean 'w0'?)"),
        ("{at: 1s, table: nope, verb: add, args: {a: 1}}", "s.yaml:2: there is no module 'nope' (one of: in, nf_0, nf_1, out, split)"),
        ("{at: 1s, table: split, verb: add, file: no.txt}", "s.yaml:2: there is no file 'no.txt' (the path is relative to the scenario)"),
    ],
)  # fmt: skip
def test_unknown_names(event: str, line: str, pipeline: dict[str, Any]) -> None:
    assert refusals(f"events:\n  - {event}\n", pipeline) == [line]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ("{set: idle=hold}", "s.yaml:2: events[0].at: it is missing"),
        ("{at: 5, set: idle=hold}", "s.yaml:2: events[0].at: '5' is not a duration (with a unit: 50us, 200ms, 1s)"),
        ("{at: 1s}", "s.yaml:2: events[0]: the event has no action (one of: set, stop, start, stall, cost, table)"),
        ("{at: 1s, stop: load, stall: w0}", "s.yaml:2: events[0]: the event has stop and stall: one action each (one of: set, stop, start, stall, cost, table)"),
        ("{at: 1s, set: idle=hold, for: 1s}", "s.yaml:2: events[0].for: 'for' does not go with set (one of: at, set)"),
        ("{at: 1s, stall: w0}", "s.yaml:2: events[0]: it is not said for how long ({at: 1s, stall: w0, for: 500us})"),
        ("{at: 1s, cost: nf_0}", "s.yaml:2: events[0]: give the new cost as times, or as per_batch and per_pkt (times: 2, or per_batch: 4us and per_pkt: 20ns)"),
        ("{at: 1s, cost: nf_0, times: -1}", "s.yaml:2: events[0].times: -1.0 is out of range: at least 0.0"),
        ("{at: 1s, cost: nf_0, times: .nan}", "s.yaml:2: events[0].times: expected a number, found '.nan'"),
        ("{at: 1s, table: split, args: {a: 1}}", "s.yaml:2: events[0]: it is not said what to do with the table (verb: replace, file: routes.txt)"),
        ("{at: 1s, set: 3}", "s.yaml:2: events[0].set: expected a list, found '3'"),
        ("at", "s.yaml:2: events[0]: expected a mapping, found 'at' ({at: 200ms, set: load.rate=4M})"),
    ],
)  # fmt: skip
def test_invalid_events(event: str, line: str, pipeline: dict[str, Any]) -> None:
    assert refusals(f"events:\n  - {event}\n", pipeline) == [line]


def test_every_mistake_is_told_at_once(pipeline: dict[str, Any]) -> None:
    lines = refusals(
        "events:\n  - {at: 1, stop: load}\n  - {at: 1s}\nduration: long\nevnts: 3\n", pipeline
    )
    assert [line.split(": ")[0] for line in lines] == [
        "s.yaml:5",
        "s.yaml:2",
        "s.yaml:3",
        "s.yaml:4",
    ]


def test_invalid_scenario_files(pipeline: dict[str, Any]) -> None:
    assert refusals("", pipeline) == [
        "s.yaml: the file is empty (a scenario needs at least events:)"
    ]
    assert refusals("name: x\n", pipeline) == [
        "s.yaml: events: there is no list of events (events: [{at: 1s, set: ...}])"
    ]
    assert "this is not YAML" in refusals("events: [", pipeline)[0]


def test_tables_are_searched_next_to_the_scenario(pipeline: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("x")
    text = "events: [{at: 1s, table: split, verb: replace, file: rules.txt, holds_up: 20us}]"
    (action,) = resolve(text, pipeline, str(tmp_path / "s.yaml"))
    assert action.table is not None and action.table.file == tmp_path / "rules.txt"
    assert action.stall_ns == {"w0": 20_000}


def test_what_a_daemon_cannot_do_is_reported(pipeline: dict[str, Any]) -> None:
    actions = resolve(
        "events:\n  - {at: 1s, stall: w0, for: 1ms}\n  - {at: 2s, cost: '*', times: 2}\n", pipeline
    )
    kinds = {name: module["kind"] for name, module in pipeline["modules"].items()}
    stall, cost = warnings_for_daemon(actions, kinds)
    assert stall.startswith("s.yaml:2: stall w0: this has no effect here")
    assert "for in, split, out: only modules of kind cost" in cost


def test_costs_drift_from_where_they_began() -> None:
    first = {"cost_per_batch_ns": 100.0, "cost_per_pkt_ns": 7.0}
    assert new_cost(first, CostChange(times=2.0)) == {
        "cost_per_batch_ns": 200.0,
        "cost_per_pkt_ns": 14.0,
    }
    assert new_cost(first, CostChange(cost_per_batch_ns=5.0)) == {
        "cost_per_batch_ns": 5.0,
        "cost_per_pkt_ns": 7.0,
    }


def test_actions_as_changes_of_a_simulation(pipeline: dict[str, Any]) -> None:
    costs = {
        name: {"cost_per_batch_ns": 100.0, "cost_per_pkt_ns": 7.0, "table_ns": [1.0, 2.0]}
        for name in pipeline["modules"]
    }
    spec = {**pipeline, "simulation": {"costs": costs}}
    drift = one("{at: 1s, cost: nf_1, times: 3}", pipeline)
    assert edits_of_action(drift, spec) == (
        [
            {
                "costs": {
                    "nf_1": {
                        "cost_per_batch_ns": 300.0,
                        "cost_per_pkt_ns": 21.0,
                        "table_ns": [3.0, 6.0],
                    }
                }
            }
        ],
        [],
    )
    settings = one("{at: 1s, set: [nf_0.trigger=4, nf_0.age_limit=none, f_0.slo=none, idle=hold]}", pipeline)  # fmt: skip
    assert edits_of_action(settings, spec)[0] == [
        {
            "buffers": {"nf_0": {"trigger_pkts": 4, "age_limit_ns": 0}},
            "slo_ns": {"f_0": 0},
            "idle": "hold",
        }
    ]
    swap = one("{at: 1s, table: split, verb: add, args: {a: 1}, holds_up: 5us}", pipeline)
    edits, warnings = edits_of_action(swap, spec)
    assert edits == [{"stall_ns": {"w0": 5000}}]
    assert len(warnings) == 1 and "use no tables" in warnings[0]
