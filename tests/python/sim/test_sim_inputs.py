# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_inputs.py - machines, costs and traffic of a simulation: their content and mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon_and_extension, needs_extension
from conftest import load

from batchplane.base.problems import BadInput
from batchplane.commands.simulate import parse_duration_word
from batchplane.control.names import split_controllers
from batchplane.daemon.process import find_program
from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import known_kinds, load_document, prepare
from batchplane.sim.simulation import Simulation
from batchplane.sim.spec import (
    Machine,
    check_costs,
    checked_machine,
    load_machine,
    with_profiled_loop,
)
from batchplane.sim.traffic import load_traffic, parse_traffic, with_traffic

PIPELINE = """\
name: one
ports: {link: {kind: ring}, other: {kind: ring}}
generators: [{name: load, port: link, rate_pps: 1000}]
modules:
  in: {kind: port_in, port: link}
  out: {kind: sink}
connect: [in -> out]
"""
GOOD = {"cost_per_batch_ns": 1.0, "cost_per_pkt_ns": 2.0}


def lines_of(error: pytest.ExceptionInfo[BadInput]) -> list[str]:
    return error.value.lines()


def test_machines_from_files(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(
        json.dumps(
            {
                "loop": {"poll_per_batch_ns": 40},
                "stall_rate_per_s": 25,
                "stall_lengths_ns": [100000],
                "move_ns": 25000,
            }
        )
    )
    machine = load_machine(path)
    assert machine.loop == {"poll_per_batch_ns": 40}
    assert machine.spec()["stalls"] == {"rate_per_s": 25, "lengths_ns": [100000]}
    assert machine.spec()["generator_stalls"] == {"rate_per_s": 0, "lengths_ns": []}
    assert machine.spec()["move_ns"] == 25000
    path.write_text('{"lop": {}}')
    with pytest.raises(BadInput) as refused:
        load_machine(path)
    assert lines_of(refused) == [f"{path}: lop: unknown key 'lop' (did you mean 'loop'?)"]
    path.write_text("{\n")
    with pytest.raises(BadInput, match=r"m.json:2: this is not JSON"):
        load_machine(path)


def test_what_a_profile_says_of_loop_and_generator_is_taken_where_the_machine_is_silent() -> None:
    profiled = {
        "poll_per_pkt_ns": 6.0,
        "far_per_pkt_ns": 15.0,
        "generator_look_ns": 250.0,
        "generator_per_burst_ns": 170.0,
        "generator_per_pkt_ns": 13.0,
    }
    given = {"poll_per_pkt_ns": 7, "generator_look_ns": 100}
    assert with_profiled_loop(Machine(given), profiled).spec()["loop"] == {**profiled, **given}
    both = {"poll_per_pkt_ns": 6.0, "egress_per_pkt_ns": 3.5, "poll_per_batch_ns": 9.5}
    loop = with_profiled_loop(Machine(), {**both, "clock_read_ns": 9.0}).spec()["loop"]
    assert loop["poll_per_pkt_ns"] == 2.5, "booking a delay is charged at the egress"
    assert loop["poll_per_batch_ns"] == 0.5, "reading the clock is charged where it is read"
    silent = with_profiled_loop(Machine(), {"generator_per_pkt_ns": 0.0}).spec()["loop"]
    assert silent == {"generator_per_pkt_ns": 25.0}, "0: it was not measured"


def test_invalid_machines() -> None:
    machine = Machine(
        {"poll_per_bach_ns": 1, "poll_per_batch_ns": -1, "generator_per_pkt_ns": float("nan")},
        overflow="explode",
        stall_rate_per_s=3,
        generator_stall_lengths_ns=(0,),
        move_ns=-1,
    )
    with pytest.raises(BadInput) as refused:
        checked_machine(machine, "m.json")
    assert lines_of(refused) == [
        "m.json: loop.poll_per_bach_ns: unknown key 'poll_per_bach_ns' (did you mean 'poll_per_batch_ns'?)",
        "m.json: loop.poll_per_batch_ns: -1 is not a time in ns (0 to 1e9)",
        "m.json: loop.generator_per_pkt_ns: nan is not a time in ns (0 to 1e9)",
        "m.json: move_ns: -1 is not 0 or more (0 to 1e9)",
        "m.json: overflow: 'explode' is unknown (wait, drop)",
        "m.json: stall_lengths_ns: a stall rate is given, but stall lengths are missing (for example [200000])",
        "m.json: generator_stall_lengths_ns: stall lengths must be positive times in ns",
    ]


def test_machines_of_the_wrong_kind(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"loop": 3, "stall_lengths_ns": 7, "noise_sigma": "much", "overflow": []}')
    with pytest.raises(BadInput) as refused:
        load_machine(path)
    assert lines_of(refused) == [
        f'{path}: loop: the loop is 3, which is not a mapping of costs ({{"poll_per_batch_ns": 40}})',
        f"{path}: noise_sigma: 'much' is not 0 or more (0 to 1e9)",
        f"{path}: overflow: '[]' is unknown (wait, drop)",
        f"{path}: stall_lengths_ns: 7 is not a list of times in ns (for example [200000])",
    ]


@pytest.mark.parametrize(
    ("costs", "line"),
    [
        ({"in": 1, "out": GOOD}, "costs: the cost of 'in' is 1, which is not a law"),
        ({"in": {"table_ns": 3}, "out": GOOD}, "p.yaml:5: modules.in: the table_ns of 'in' is 3, which is not a list"),
        (5, "costs: 5 is neither costs nor a costs file"),
    ],
)  # fmt: skip
def test_costs_of_the_wrong_kind(costs: Any, line: str) -> None:
    with pytest.raises(BadInput) as refused:
        Simulation(load(PIPELINE), costs=costs)
    assert [found.split(" (")[0] for found in lines_of(refused)] == [line]


@pytest.mark.parametrize(
    ("costs", "line"),
    [
        ({"in": GOOD}, "p.yaml:6: modules.out: 'out' has no cost (batchplane profile --pipeline p.yaml --out costs.json)"),
        ({"in": GOOD, "out": {**GOOD, "cost_per_pkt_ns": -1.0}}, "p.yaml:6: modules.out: the cost_per_pkt_ns of 'out' is -1.0, which is not a time (0 to 1e9 ns)"),
        ({"in": GOOD, "out": {**GOOD, "cost_per_batch_ns": 1e12}}, "p.yaml:6: modules.out: the cost_per_batch_ns of 'out' is 1000000000000.0, which is not a time (0 to 1e9 ns)"),
        ({"in": GOOD, "out": {**GOOD, "cost_per_batch_ns": float("inf")}}, "p.yaml:6: modules.out: the cost_per_batch_ns of 'out' is inf, which is not a time (0 to 1e9 ns)"),
        ({"in": GOOD, "out": {**GOOD, "table_ns": [1.0, "x"]}}, "p.yaml:6: modules.out: the table_ns of 'out' holds 'x', which is not a time (0 to 1e9 ns)"),
        ({"in": GOOD, "out": GOOD, "ou": GOOD}, "a cost is given for 'ou', which is not a module (did you mean 'out'?)"),
    ],
)  # fmt: skip
def test_invalid_costs(costs: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_costs(costs, load(PIPELINE))
    assert lines_of(refused) == [line]


def test_traffic_changes_and_adds_generators() -> None:
    document = load(PIPELINE)
    text = (
        "generators:\n  - {name: load, arrivals: on_off, on: 5us}\n  - {name: new, port: other}\n"
    )
    traffic = parse_traffic(text, "t.yaml", document.pipeline)
    changed = with_traffic(document, traffic).pipeline["generators"]
    assert changed == [
        {
            "name": "load",
            "port": "link",
            "params": {"rate_pps": 1000, "arrivals": "on_off", "on_ns": 5000},
        },
        {"name": "new", "port": "other", "params": {}},
    ]
    assert document.pipeline["generators"][0]["params"] == {"rate_pps": 1000}


@needs_daemon_and_extension
def test_a_generator_may_stand_for_a_real_port() -> None:
    text = (
        "generators:\n  - {name: home, port: lan, rate_pps: 100000, arrivals: constant,"
        " flows: [{name: lan_to_wan, flow: lan_to_wan}]}\n"
    )
    document = load_document("router", {}, known_kinds())
    inputs = prepare(document, parse_traffic(text, "t.yaml", document.pipeline), "prior")
    ports = inputs.document.pipeline["ports"]
    assert ports["lan"] == {"kind": "ring", "params": {"size_pkts": 512}}
    assert ports["wan"]["kind"] == "af_packet"
    simulation = make_simulation(inputs.spec)
    simulation.run_until(10_000_000)
    assert simulation.step()[0]["flows"]["pkts"].tolist() == [1000, 0]


def test_mistakes_of_traffic_are_told_at_its_own_lines() -> None:
    document = load(PIPELINE)
    text = """\
generators:
  - name: new
    port: other
    order: random
  - name: load
    arrivals: poisson
    flows: [{name: a}]
"""
    both = with_traffic(document, parse_traffic(text, "t.yaml", document.pipeline))
    assert both.where("generators[0].params.arrivals") == "t.yaml:6"
    assert both.where("generators[0].params.flows[0].name") == "t.yaml:7"
    assert both.where("generators[0].params.rate_pps") == "p.yaml:3", "the pipeline says this one"
    assert both.where("generators[0]") == "t.yaml:5"
    assert both.where("generators[1].params.order") == "t.yaml:4"
    assert both.where("modules.in") == document.where("modules.in")
    # The names that the daemon and the simulator use when they read traffic.
    assert both.where("generators.load.flows[0]") == "t.yaml:7"
    assert both.where("simulation.traffic.new") == "t.yaml:2"
    assert document.where("generators[0].params.arrivals") == "p.yaml:3"


@needs_extension
@pytest.mark.parametrize("has_daemon", [False, True])
@pytest.mark.parametrize(
    ("entry", "at"),
    [
        ("{name: load,\n     arrivals: sometimes}", "t.yaml:[23]: "),
        ("{name: load,\n     rate_pps: -5}", "t.yaml:[23]: "),
        ("{name: load, port:\n     nowhere}", "t.yaml:[23]: "),
        ("{name: load}\n  - {name: new, port: other, order: best}", "t.yaml:3: "),
    ],
)
def test_wrong_traffic_is_not_the_pipelines_fault(
    entry: str, at: str, has_daemon: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_daemon:
        find_program()
    else:
        monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "t.yaml").write_text(f"generators:\n  - {entry}\n")
    with pytest.raises(BadInput) as refused:
        Simulation(tmp_path / "p.yaml", tmp_path / "t.yaml", {"in": GOOD, "out": GOOD})
    for line in lines_of(refused):
        assert re.match(f"{tmp_path}/{at}", line), line


@needs_daemon_and_extension
def test_wrong_traffic_flows_are_told_at_their_lines(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    text = "generators:\n  - name: load\n    flows:\n      - {name: a, colour: red}\n"
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"t.yaml:[34]: .*unknown parameter 'colour'"):
        Simulation(tmp_path / "p.yaml", tmp_path / "t.yaml", {"in": GOOD, "out": GOOD})


def test_invalid_traffic(tmp_path: Path) -> None:
    pipeline = load(PIPELINE).pipeline
    for text, line in (
        ("generators: [{name: lod}]", "t.yaml:1: generators[0].name: the pipeline has no generator 'lod' (did you mean 'load'?)"),
        ("flows: []", "t.yaml:1: flows: a traffic file has generators: only, not 'flows'"),
        ("generators: [{name: load, trace: no.pcap}]", "t.yaml:1: generators[0].trace: there is no file 'no.pcap'"),
    ):  # fmt: skip
        with pytest.raises(BadInput) as refused:
            parse_traffic(text, "t.yaml", pipeline)
        assert line in lines_of(refused)
    with pytest.raises(BadInput, match="there is no such file"):
        load_traffic(tmp_path / "no.yaml", pipeline)
    (tmp_path / "a.pcap").write_bytes(b"")
    assert load_traffic(tmp_path / "a.pcap", pipeline).traces == {"load": tmp_path / "a.pcap"}
    without = {**pipeline, "generators": []}
    with pytest.raises(BadInput, match="the pipeline has no generator, so it is unclear"):
        load_traffic(tmp_path / "a.pcap", without)


def test_words_of_the_command_line() -> None:
    assert split_controllers("null, fixed(8),max,") == ["null", "fixed(8)", "max"]
    assert split_controllers("a(1,2),b") == ["a(1,2)", "b"]
    assert parse_duration_word("0.5", "-d") == 500_000_000
    assert parse_duration_word("20ms", "-d") == 20_000_000
    for word in ("long", "-1", "nan", "0"):
        with pytest.raises(BadInput, match="is not a duration"):
            parse_duration_word(word, "-d")
