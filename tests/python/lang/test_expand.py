# SPDX-License-Identifier: BSD-3-Clause
"""test_expand.py - from params, repeat and ${} to the canonical form, with the line of every
key."""

from typing import Any

import pytest
from conftest import load
from hypothesis import given, settings
from hypothesis import strategies as st

from batchplane.base.problems import BadInput

TWO_BRANCHES = """\
name: demo
params: {n: 2, slo: 1ms}
modules:
  in: {kind: source, burst_pkts: ${n * 16}}
connect:
  - in -> split
repeat:
  - as: i
    count: ${n}
    modules:
      ttl_${i}: {kind: ttl, trigger: 8, age_limit: 50us}
      out_${i}: {kind: sink}
    connect:
      - split:${i} -> ttl_${i} -> out_${i}
      - ttl_${i}:drop -> expired
    flows:
      - {name: flow_${i}, path: [in, split, ttl_${i}, out_${i}], delay_slo: ${slo}}
"""


def lines(text: str, **overrides: str) -> list[str]:
    return [problem.line() for problem in load(text, **overrides).problems]


def test_canonical_form() -> None:
    document = load(TWO_BRANCHES)
    assert document.problems == []
    pipeline = document.pipeline
    assert pipeline["version"] == 1 and pipeline["name"] == "demo"
    assert pipeline["modules"]["in"] == {"kind": "source", "params": {"burst_pkts": 32}}
    assert pipeline["modules"]["ttl_1"] == {
        "kind": "ttl",
        "params": {},
        "trigger_pkts": 8,
        "age_limit_ns": 50_000,
    }
    assert pipeline["edges"][:4] == [
        {"from": "in", "gate": 0, "to": "split"},
        {"from": "split", "gate": 0, "to": "ttl_0"},
        {"from": "ttl_0", "gate": 0, "to": "out_0"},
        {"from": "ttl_0", "gate": "drop", "to": "expired"},
    ]
    assert pipeline["flows"][1] == {
        "name": "flow_1",
        "path": ["in", "split", "ttl_1", "out_1"],
        "delay_slo_ns": 1_000_000,
    }


def test_positions() -> None:
    places = load(TWO_BRANCHES).pipeline["source_map"]
    assert places["modules.in"] == "p.yaml:4"
    assert places["modules.in.params.burst_pkts"] == "p.yaml:4"
    assert places["modules.ttl_1.trigger_pkts"] == "p.yaml:11"
    assert places["edges[0]"] == "p.yaml:6" and places["edges[4]"] == "p.yaml:14"
    assert places["flows[0]"] == places["flows[1]"] == "p.yaml:17"


def test_overrides_keep_the_type() -> None:
    assert load(TWO_BRANCHES, n="4").pipeline["modules"]["ttl_3"]["kind"] == "ttl"
    assert load(TWO_BRANCHES, slo="2us").pipeline["flows"][0]["delay_slo_ns"] == 2000
    assert lines(TWO_BRANCHES, n="many") == [
        "command line: n: 'many' is not an integer (for example n=2)"
    ]
    assert lines(TWO_BRANCHES, nn="3") == [
        "command line: nn: unknown parameter 'nn' (did you mean 'n'?)"
    ]


def test_zero_repeats_and_nesting() -> None:
    assert list(load(TWO_BRANCHES, n="0").pipeline["modules"]) == ["in"]
    nested = """\
modules: {in: {kind: source}}
repeat:
  - as: a
    count: 2
    repeat:
      - as: b
        count: 3
        modules:
          m_${a * 3 + b}: {kind: ttl}
"""
    assert list(load(nested).pipeline["modules"]) == ["in", *[f"m_{i}" for i in range(6)]]


def test_repeated_list_elements() -> None:
    text = """\
modules:
  in:
    kind: source
    flows:
      - {name: first}
      - {repeat: {as: i, count: 3}, value: {name: f_${i}, dst: ${ip(10.0.0.1, i)}, wait: 5us}}
      - repeat: {as: i, count: 2}
        value: ${i}
"""
    flows = load(text).pipeline["modules"]["in"]["params"]["flows"]
    assert flows[0] == {"name": "first"} and flows[3] == {
        "name": "f_2",
        "dst": "10.0.0.3",
        "wait_ns": 5000,
    }
    assert flows[4:] == [0, 1]


def test_params_may_use_earlier_params() -> None:
    text = "params: {a: 3, b: ${a * 2}}\nmodules: {in: {kind: source, burst_pkts: ${b}}}\n"
    assert load(text).pipeline["modules"]["in"]["params"] == {"burst_pkts": 6}
    assert load(text, a="5").pipeline["modules"]["in"]["params"] == {"burst_pkts": 10}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "modules:\n  in: {kind: source, x: ${m}}\n",
            "p.yaml:2: modules.in.x: unknown name 'm' (add it under params: m: ...)",
        ),
        (
            "repeat:\n  - {as: i, count: x}\nmodules: {a: {kind: ttl}}\n",
            "p.yaml:2: repeat.count: count is 'x' (an integer from 0 to 1000000)",
        ),
        (
            "repeat:\n  - {as: i}\nmodules: {a: {kind: ttl}}\n",
            "p.yaml:2: repeat: 'count' is missing (as: i, count: N)",
        ),
        (
            "params: {i: 1}\nrepeat:\n  - {as: i, count: 1}\nmodules: {a: {kind: ttl}}\n",
            "p.yaml:3: repeat.as: 'i' is already a param or loop variable (choose another name)",
        ),
        (
            "repeat:\n  - {as: 3x, count: 1}\nmodules: {a: {kind: ttl}}\n",
            "p.yaml:2: repeat.as: 'as' is the name of the loop variable (as: i)",
        ),
        (
            "repeat:\n  - {as: i, count: 1, module: {}}\nmodules: {a: {kind: ttl}}\n",
            "p.yaml:2: repeat: unknown key 'module' (did you mean 'modules'?)",
        ),
        (
            "modules: {a: {kind: ttl}}\nmodules_: {}\n",
            "p.yaml:2: modules_: unknown key 'modules_' (did you mean 'modules'?)",
        ),
        (
            "modules: {a: {kind: ttl}}\nrepeat:\n  - {as: i, count: 2, modules: {a: {kind: ttl}}}\n",
            "p.yaml:3: modules.a: 'a' exists already (first in line 1; choose another name)",
        ),
        (
            "modules: {a: 7}\n",
            "p.yaml:1: modules.a: expected a mapping, found '7' (for example {kind: ttl})",
        ),
        (
            "modules: {a: {trigger: 8}}\n",
            "p.yaml:1: modules.a: 'kind' is missing (add kind: ...; `batchplane modules` lists them)",
        ),
        (
            "modules: {a: {kind: ttl, trigger: 300}}\n",
            "p.yaml:1: modules.a.trigger: 300 is out of range: at most 256",
        ),
        (
            "modules: {a: {kind: ttl, age_limit: 50}}\n",
            "p.yaml:1: modules.a.age_limit: 'age_limit' needs a unit (for example age_limit: 50us)",
        ),
        ("modules: {a: {kind: ttl, age_limit: soon}}\n", None),
        (
            "modules: {a b: {kind: ttl}}\n",
            "p.yaml:1: modules.a b: 'a b' is not a name (letters, digits, _ and -, "
            "at most 64, no digit first)",
        ),
        (
            "modules: {a: {kind: ttl}}\nconnect: [a - b]\n",
            "p.yaml:2: connect[0]: 'a - b' is not a chain (write a -> b, or a:1 -> b for gate 1 of a)",
        ),
        (
            "modules: {a: {kind: ttl}}\nconnect: [a -> a:2]\n",
            "p.yaml:2: connect[0]: the last module of 'a -> a:2' has a gate (a gate says where a packet leaves: "
            "a:1 -> b)",
        ),
        (
            "modules: {a: {kind: ttl}}\nconnect: {a: b}\n",
            "p.yaml:2: connect: connect is a list (start each element with '- ')",
        ),
        (
            "modules: {a: {kind: ttl}}\nflows: [{name: f, path: [a], delay: 1ms}]\n",
            "p.yaml:2: flows[0].delay_ns: unknown key 'delay_ns' (did you mean 'delay_slo'?)",
        ),
        (
            "modules: {a: {kind: ttl}}\nflows: [{path: [a]}]\n",
            "p.yaml:2: flows[0]: 'name' is missing (add name: ...)",
        ),
        (
            "modules: {a: {kind: ttl}}\nengine: {idle: sleep}\n",
            "p.yaml:2: engine.idle: 'sleep' does not fit here: release or hold",
        ),
        (
            "modules: {a: {kind: ttl}}\nengine: {batch: 8}\n",
            "p.yaml:2: engine.batch: unknown key 'batch' (did you mean 'batch_pkts'?)",
        ),
        (
            "modules: {a: {kind: ttl}}\nversion: 2\n",
            "p.yaml:2: version: version 2 is not known (version: 1)",
        ),
        (
            "modules: {a: {kind: ttl}}\ninterfaces: [{name: x, port: p, mac: 1}]\n",
            "p.yaml:2: interfaces[0].mac: expected text, found '1'",
        ),
        ("modules: {}\n", "p.yaml:1: modules: there are no modules (add modules:)"),
    ],
)
def test_mistakes(text: str, line: str | None) -> None:
    found = lines(text)
    assert found == [line] if line else len(found) == 0


def test_every_mistake_is_told() -> None:
    text = (
        "modules:\n  a: {kind: ttl, x: ${q}}\n  b: 3\n  c: {trigger: 1}\nflow: []\nconnect: [a]\n"
    )
    assert [line.split(":")[1] for line in lines(text)] == ["2", "5", "3", "4", "6"]


def test_expansion_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchplane.lang.expand.MAX_VALUES", 5000)
    loops = "    repeat:\n      - {as: j, count: 1000000, connect: [x -> y]}\n"
    with pytest.raises(BadInput, match="expands to more than"):
        load(f"modules: {{a: {{kind: ttl}}}}\nrepeat:\n  - as: i\n    count: 1000000\n{loops}")


def test_durations_follow_the_schema(kinds: Any) -> None:
    text = (
        "modules: {a: {kind: lookup, window: 5us, mode: fast}, b: {kind: lookup, window_ns: 2ms}}\n"
    )
    modules = load(text, kinds).pipeline["modules"]
    assert modules["a"]["params"] == {"window_ns": 5000, "mode": "fast"}
    assert modules["b"]["params"] == {"window_ns": 2_000_000}
    unit = load("modules: {a: {kind: lookup, window: 5}}\n", kinds).problems
    assert [problem.line() for problem in unit] == [
        "p.yaml:1: modules.a.window: 'window' needs a unit (for example window: 5us)"
    ]


@settings(max_examples=60)
@given(st.integers(0, 5), st.integers(0, 5))
def test_repeat_is_what_a_loop_would_write(outer: int, inner: int) -> None:
    text = f"""\
params: {{n: {outer}, m: {inner}}}
modules: {{s: {{kind: source}}}}
repeat:
  - as: i
    count: ${{n}}
    repeat:
      - {{as: j, count: ${{m}}, modules: {{x_${{i}}_${{j}}: {{kind: ttl}}}}, connect: ["s:${{i * m + j}} -> x_${{i}}_${{j}}"]}}
"""
    pipeline = load(text).pipeline
    cells = [(i, j) for i in range(outer) for j in range(inner)]
    assert list(pipeline["modules"]) == ["s", *[f"x_{i}_{j}" for i, j in cells]]
    assert pipeline["edges"] == [
        {"from": "s", "gate": i * inner + j, "to": f"x_{i}_{j}"} for i, j in cells
    ]


_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 5), st.text(alphabet="ab->:${} ", max_size=8)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["kind", "repeat", "as", "value", "a b", "${x}"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "modules",
                "connect",
                "flows",
                "repeat",
                "params",
                "engine",
                "ports",
                "generators",
                "interfaces",
                "workers",
                "name",
                "zz",
            ]
        ),
        _VALUES,
        max_size=4,
    )
)
def test_any_file_is_a_document_or_bad_input(data: dict[str, Any]) -> None:
    import json

    try:
        document = load(json.dumps(data))
    except BadInput as error:
        assert error.problems
    else:
        assert isinstance(document.pipeline["modules"], dict)
        assert document.problems or document.pipeline["modules"]
