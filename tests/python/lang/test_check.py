# SPDX-License-Identifier: BSD-3-Clause
"""test_check.py - each mistake that check can find, with its line, its key and its fix."""

import copy
import json
from pathlib import Path

import pytest
from conftest import load

from batchplane.base.problems import BadInput, RunFailed, edit_distance, nearest
from batchplane.lang.check import check_all, daemon_problem, raise_errors
from batchplane.lang.kinds import Kinds, parse_kinds
from batchplane.native.check import check_document

GOOD = """\
modules:
  in: {kind: source}
  ttl: {kind: ttl}
  out: {kind: sink}
connect:
  - in -> ttl -> out
flows:
  - {name: f, path: [in, ttl, out]}
"""


def found(text: str, kinds: Kinds) -> list[str]:
    return [problem.line() for problem in check_document(load(text, kinds), kinds)]


def test_a_good_pipeline_has_no_problems(kinds: Kinds) -> None:
    assert found(GOOD, kinds) == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "{kind: ttl}",
            "{kind: tll}",
            "p.yaml:3: modules.ttl.kind: unknown kind 'tll' (did you mean 'ttl'?)",
        ),
        (
            "{kind: ttl}",
            "{kind: ttl, mend: true}",
            "p.yaml:3: modules.ttl.mend: unknown parameter 'mend' (did you mean 'mend_checksum'?)",
        ),
        (
            "{kind: ttl}",
            "{kind: ttl, triger: 8}",
            "p.yaml:3: modules.ttl.triger: unknown parameter 'triger' (did you mean 'trigger'?)",
        ),
        (
            "{kind: sink}",
            "{kind: sink, colour: red}",
            "p.yaml:4: modules.out.colour: unknown parameter 'colour' (it has no parameters)",
        ),
        (
            "{kind: ttl}",
            "{kind: ttl, mend_checksum: 1}",
            "p.yaml:3: modules.ttl.mend_checksum: expected true or false, found '1' (update the header checksum)",
        ),
        (
            "{kind: source}",
            "{kind: source, burst_pkts: 300}",
            "p.yaml:2: modules.in.burst_pkts: 300 is out of range 0 .. 256 pkts (packets per poll)",
        ),
        (
            "{kind: source}",
            "{kind: source, burst_pkts: many}",
            "p.yaml:2: modules.in.burst_pkts: expected an integer, found 'many' (packets per poll)",
        ),
        (
            "{kind: source}",
            "{kind: source, burst_pkts: true}",
            "p.yaml:2: modules.in.burst_pkts: expected an integer, found true (packets per poll)",
        ),
        (
            "{kind: source}",
            "{kind: source, flows: {a: 1}}",
            "p.yaml:2: modules.in.flows: expected a list, found a mapping (flows to make)",
        ),
        (
            "{kind: source}",
            "{kind: source, trigger: 4}",
            "p.yaml:2: modules.in.trigger: a source has no buffer (set the trigger at a module after it)",
        ),
        (
            "{kind: ttl}",
            "{kind: ttl, trigger: 64}",
            "p.yaml:3: modules.ttl.trigger: trigger 64 is more than a batch (at most engine.batch_pkts = 32)",
        ),
        (
            "{kind: source}",
            "{kind: source, worker: w9}",
            "p.yaml:2: modules.in.worker: there is no worker 'w9' (did you mean 'w0'?)",
        ),
        (
            "in -> ttl -> out",
            "in -> tll -> out\n  - in:1 -> ttl -> out",
            "p.yaml:6: connect: there is no module 'tll' (did you mean 'ttl'?)",
        ),
        (
            "in -> ttl -> out",
            "in -> ttl -> out\n  - out -> ttl",
            "p.yaml:7: connect: 'out' (sink) ends the path: nothing comes after it",
        ),
        (
            "in -> ttl -> out",
            "in -> ttl -> out\n  - ttl:drop -> in",
            "p.yaml:7: connect: 'in' (source) is an input: nothing can lead to it",
        ),
        (
            "in -> ttl -> out",
            "in -> ttl -> out\n  - ttl -> out",
            "p.yaml:7: connect: 'ttl' is joined to 'out' twice (remove one)",
        ),
        (
            "in -> ttl -> out",
            "in -> ttl -> out\n  - in -> out",
            "p.yaml:7: connect: gate 0 of 'in' leads to both 'ttl' and 'out' (a packet goes one way: "
            "use another gate)",
        ),
        (
            "in -> ttl -> out",
            "in -> ttl -> out\n  - ttl:2 -> out",
            "p.yaml:7: connect: 'ttl' (ttl) has no gate 2 (it has gate 0: ttl -> ...)",
        ),
        (
            "in -> ttl -> out",
            "in -> ttl -> out\n  - ttl:dorp -> out",
            "p.yaml:7: connect: 'ttl' (ttl) has no gate 'dorp' (did you mean 'drop'?)",
        ),
        (
            "path: [in, ttl, out]",
            "path: [in, tl, out]",
            "p.yaml:8: flows[0].path: flow 'f': there is no module 'tl' (did you mean 'ttl'?)",
        ),
        (
            "path: [in, ttl, out]",
            "path: [ttl, out]",
            "p.yaml:8: flows[0].path: flow 'f' begins at 'ttl', which is no input (begin at a port_in or source)",
        ),
        (
            "path: [in, ttl, out]",
            "path: [in, ttl]",
            "p.yaml:8: flows[0].path: flow 'f' ends at 'ttl', where no packet leaves (end at a port_out or sink)",
        ),
        (
            "path: [in, ttl, out]",
            "path: [ttl, in, out]",
            "p.yaml:8: flows[0].path: flow 'f' begins at 'ttl', which is no input (begin at a port_in or source)",
        ),
        (
            "path: [in, ttl, out]",
            "path: [in, 'ttl:1', out]",
            "p.yaml:8: flows[0].path: flow 'f': gate 1 of 'ttl' does not lead to 'out' (write ttl:0)",
        ),
        (
            "path: [in, ttl, out]",
            "path: [in, 'ttl x', out]",
            "p.yaml:8: flows[0].path: flow 'f': there is no module 'ttl x' (did you mean 'ttl'?)",
        ),
        (
            "{name: f,",
            "{name: other,",
            "p.yaml:8: flows[0]: the name 'other' is taken by packets outside all flows (choose another name)",
        ),
        (
            "flows:\n",
            "flows:\n  - {name: f, path: [in, ttl, out]}\n",
            "p.yaml:9: flows[1]: the flow name 'f' is used twice (names are unique)",
        ),
        (
            "modules:\n",
            "workers: [{name: a, core: 1}, {name: b, core: 1}]\nmodules:\n",
            "p.yaml:1: workers[1]: core 1 is already used by 'a' (each worker has a core of its own)",
        ),
        (
            "modules:\n",
            "workers: [{name: a}, {name: b, core: 1}, {name: c, core: 1}]\nmodules:\n",
            "p.yaml:1: workers[2]: core 1 is already used by 'b' (each worker has a core of its own)",
        ),
        (
            "modules:\n",
            "interfaces: [{name: lan, port: pO}]\nports: {p0: {kind: ring}}\nmodules:\n",
            "p.yaml:1: interfaces[0]: there is no port 'pO' (did you mean 'p0'?)",
        ),
        (
            "modules:\n",
            "ports: {p0: {kind: rign}}\ngenerators: [{name: g, port: p0}]\nmodules:\n",
            "p.yaml:1: ports.p0: unknown kind 'rign' of port (did you mean 'ring'?)",
        ),
        (
            "modules:\n",
            "ports: {p0: {kind: ring, size: 3}}\nmodules:\n",
            "p.yaml:1: ports.p0.size: unknown parameter 'size' (did you mean 'size_pkts'?)",
        ),
        (
            "modules:\n",
            "ports: {p0: {kind: ring}}\ngenerators: [{name: g, port: p0, rate: 3}]\nmodules:\n",
            "p.yaml:2: generators[0].rate: unknown parameter 'rate' (did you mean 'rate_pps'?)",
        ),
        (
            "{kind: source}",
            "{kind: port_in}",
            "p.yaml:2: modules.in: 'port' is missing (add port: name of the port)",
        ),
        (
            "{kind: source}",
            "{kind: port_in, port: p1}",
            "p.yaml:2: modules.in.port: there is no port 'p1' (add it under ports:)",
        ),
    ],
)
def test_one_mistake(kinds: Kinds, old: str, new: str, line: str) -> None:
    assert line in found(GOOD.replace(old, new, 1), kinds)


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("gateway: 10.0.0", "'10.0.0' is no IPv4 address"),
        (
            "within: 10.0.0.1/8",
            "'10.0.0.1/8' is no IPv4 prefix such as 10.0.0.0/8 (host bits must be zero)",
        ),
        ("mac: 02:00", "'02:00' is no MAC address"),
        ("mode: slow", "'slow' is not one of fast, small"),
        ("mode: 3", "expected string, found '3'"),
    ],
)
def test_text_parameters(kinds: Kinds, param: str, message: str) -> None:
    text = GOOD.replace("{kind: ttl}", f"{{kind: lookup, {param}}}")
    assert [message in line for line in found(text, kinds)] == [True]


def test_named_gates(kinds: Kinds) -> None:
    text = GOOD.replace("{kind: ttl}", "{kind: lookup}").replace(
        "in -> ttl -> out", "in -> ttl:forward -> out"
    )
    assert found(text, kinds) == []


def test_cycles_are_told_with_their_path(kinds: Kinds) -> None:
    text = """\
modules:
  in: {kind: source}
  a: {kind: lookup}
  b: {kind: ttl}
  out: {kind: sink}
connect:
  - in -> a -> b -> a
  - a:1 -> out
"""
    assert found(text, kinds) == [
        "p.yaml:7: connect: the graph has a cycle: a -> b -> a (tasks are acyclic; put a queue module into the loop)"
    ]


def test_a_queue_may_close_a_loop(kinds: Kinds) -> None:
    text = """\
modules:
  in: {kind: source}
  a: {kind: lookup}
  q: {kind: queue}
  out: {kind: sink}
connect:
  - in -> a -> q -> a
  - a:1 -> out
"""
    assert found(text, kinds) == []


def test_unreachable_open_and_inputless(kinds: Kinds) -> None:
    lonely = GOOD.replace("modules:\n", "modules:\n  lost: {kind: ttl}\n")
    assert found(lonely, kinds) == [
        "p.yaml:2: modules.lost: nothing comes after 'lost': its packets are dropped (connect it: lost -> ...)",
        "p.yaml:2: modules.lost: no packet can reach 'lost' (connect something to it: ... -> lost, or remove it)",
    ]
    assert found("modules:\n  a: {kind: ttl}\n  b: {kind: sink}\nconnect: [a -> b]\n", kinds) == [
        "p.yaml:1: modules: no module brings packets in (add a port_in or source)"
    ]


def test_ambiguous_paths_name_a_gate(kinds: Kinds) -> None:
    text = GOOD.replace("{kind: ttl}", "{kind: lookup}").replace(
        "-> out", "-> out\n  - ttl:1 -> out", 1
    )
    assert found(text, kinds) == [
        "p.yaml:9: flows[0].path: flow 'f': several gates of 'ttl' lead to 'out' (say which: ttl:forward)"
    ]
    assert found(text.replace("[in, ttl,", "[in, 'ttl:1',"), kinds) == []


def test_same_path_twice(kinds: Kinds) -> None:
    text = f"{GOOD}  - {{name: g, path: [in, ttl, out]}}\n"
    assert found(text, kinds) == [
        "p.yaml:9: flows[1]: flow 'g' has the same path as 'f' (flows are told apart by their paths: join them, or remove one)"
    ]


def test_a_broken_module_is_not_reported_twice(kinds: Kinds) -> None:
    assert found(GOOD.replace("{kind: ttl}", "{trigger: 8}"), kinds) == [
        "p.yaml:3: modules.ttl: 'kind' is missing (add kind: ...; `batchplane modules` lists them)"
    ]


def test_all_mistakes_at_once_in_file_order(kinds: Kinds) -> None:
    text = (
        GOOD.replace("{kind: ttl}", "{kind: ttl, mend: 1}")
        .replace("{kind: source}", "{kind: sourse}")
        .replace("path: [in", "path: [inn")
    )
    assert [line.split(":")[1] for line in found(text, kinds)] == ["2", "3", "8"]


def test_repeated_mistakes_are_reported_once(kinds: Kinds) -> None:
    text = """\
modules: {in: {kind: source}, pick: {kind: lookup}}
connect: [in -> pick]
repeat:
  - as: i
    count: 5
    modules:
      ttl_${i}: {kind: ttl, mend: 1}
      out_${i}: {kind: sink}
    connect: [pick:${i} -> ttl_${i} -> out_${i}]
"""
    assert found(text, kinds) == [
        "p.yaml:7: modules.ttl_0.mend: unknown parameter 'mend', and 4 more alike (did you mean 'mend_checksum'?)"
    ]


def test_a_wrong_name_in_connect_is_the_only_mistake_told(kinds: Kinds) -> None:
    assert found(GOOD.replace("in -> ttl ->", "in -> tlt ->"), kinds) == [
        "p.yaml:6: connect: there is no module 'tlt' (did you mean 'ttl'?)"
    ]


def test_warnings_do_not_stop(kinds: Kinds) -> None:
    problems = check_document(load(f"{GOOD}ports: {{p9: {{kind: ring}}}}\n"), kinds)
    assert [problem.is_warning for problem in problems] == [True]
    raise_errors(problems)


def test_raise_errors_holds_all(kinds: Kinds) -> None:
    with pytest.raises(BadInput) as caught:
        raise_errors(
            check_document(
                load(GOOD.replace("kind: ttl", "kind: x").replace("kind: sink", "kind: y")), kinds
            )
        )
    assert len(caught.value.lines()) == 2 and caught.value.exit_code == 2


def test_without_a_daemon_structure_is_still_checked() -> None:
    assert found(GOOD.replace("in -> ttl", "in -> tlt"), Kinds())[0].endswith(
        "(did you mean 'ttl'?)"
    )


def test_the_daemon_has_the_last_word(kinds: Kinds, program: Path) -> None:
    problems, answer = check_all(load(f"engine: {{pool_pkts: 1}}\n{GOOD}"), program)
    assert [problem.line() for problem in problems] == [
        "p.yaml:1: engine.pool_pkts: a pool of 1 is too small (at least 64)"
    ]
    assert answer["plan"] == {"pool_pkts": 4096}


def test_a_broken_daemon_is_an_error_of_its_own(kinds: Kinds, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(RunFailed, match="--check ended with code 3"):
        check_all(load(GOOD), broken)


def test_daemon_errors_keep_their_place() -> None:
    problem = daemon_problem(
        {"where": "modules.ttl.params.x (l2l3.yaml:12)", "message": "m", "fix": "f"}
    )
    assert problem.line() == "l2l3.yaml:12: modules.ttl.x: m (f)"


def test_kinds_are_read_in_each_form() -> None:
    entry = {
        "kind": "a",
        "shape": "inplace",
        "gates": ["x"],
        "params": [{"name": "p", "default_value": 3}],
    }
    for form in ([entry], {"modules": [entry]}, {"modules": {"a": {**entry, "kind": "a"}}}):
        kind = parse_kinds(json.dumps(form)).modules["a"]
        assert (
            kind.shape == "in_place" and kind.gate_names == ("x",) and kind.params["p"].default == 3
        )


def test_nearest_words() -> None:
    assert edit_distance("tlt", "ttl") == 1 and edit_distance("", "abc") == 3
    assert nearest("cheksum", ["checksum", "counter"]) == "checksum"
    assert nearest("zebra", ["ttl", "sink"]) == ""


OWNERS = """\
workers: [{name: a}, {name: b}]
ports: {p: {kind: ring}, q: {kind: ring}}
modules:
  one: {kind: port_in, port: p, worker: a}
  end_one: {kind: port_out, port: q}
  two: {kind: port_in, port: q, worker: b}
  end_two: {kind: port_out, port: p}
connect: [one -> end_one, two -> end_two]
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "port: q, worker: b",
            "port: p, worker: b",
            "p.yaml:6: modules.two: port 'p' is polled by 'one' on worker a and by 'two' on worker b "
            "(one worker polls a port: put both on one, or hand packets on by a queue)",
        ),
        (
            "end_two: {kind: port_out, port: p}",
            "end_two: {kind: port_out, port: q}",
            "p.yaml:7: modules.end_two: port 'q' is sent into by 'end_one' on worker a and by "
            "'end_two' on worker b (one worker sends into a port: put both on one, or join them by "
            "a queue)",
        ),
        (
            "two -> end_two",
            "two -> end_one",
            "p.yaml:6: modules.two: inputs of one task are given to workers 'a' and 'b' (put a queue "
            "between them, or use one worker)",
        ),
    ],
)
def test_each_end_of_a_port_has_one_worker(kinds: Kinds, old: str, new: str, line: str) -> None:
    """The same message as the daemon's when it builds the graph, but without a daemon."""
    schema = copy.deepcopy(kinds.schema)
    entry = next(each for each in schema["modules"] if each["kind"] == "port_in")
    schema["modules"].append({**entry, "kind": "port_out", "shape": "terminal", "is_egress": True})
    known = parse_kinds(json.dumps(schema))
    assert found(OWNERS, known) == []
    assert line in found(OWNERS.replace(old, new), known)
