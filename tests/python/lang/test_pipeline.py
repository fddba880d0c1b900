# SPDX-License-Identifier: BSD-3-Clause
"""test_pipeline.py - the Python builder and the YAML give the same result, and all kinds of files
load and save."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import load
from hypothesis import given
from hypothesis import strategies as st

from batchplane import Options, Pipeline
from batchplane.base.problems import BadInput
from batchplane.lang.load import find_pipeline, load_pipeline, parse_overrides, pipeline_names
from batchplane.lang.yaml_writer import to_yaml

ROOT = Path(__file__).resolve().parents[3]


def bare(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Without source positions."""
    return {key: value for key, value in pipeline.items() if key != "source_map"}


def build() -> Pipeline:
    p = Pipeline("demo", Options(batch_pkts=64, stranding_limit="2s"))
    p.worker("w0", 1)
    p.port("p0", "ring", size_pkts=64)
    p.interface("lan", "p0", mac="02:00:00:00:00:01", addresses=["10.0.0.1/24"])
    p.generator("g0", "p0", core=0, rate_pps=1000)
    source = p.module("in", "port_in", port="p0", worker="w0")
    lookup = p.module("lookup", "lookup", window="5us")
    ttl = p.module("ttl", "ttl", trigger=8, age_limit="50us")
    out, spare = p.module("out", "sink"), p.module("spare", "sink")
    _ = source >> lookup[3] >> ttl >> out
    _ = ttl["drop"] >> spare
    p.flow("f", [source, lookup[3], ttl, "out"], delay_slo="1ms")
    return p


SAME = """\
name: demo
engine: {batch_pkts: 64, stranding_limit: 2s}
workers: [{name: w0, core: 1}]
ports: {p0: {kind: ring, size_pkts: 64}}
interfaces: [{name: lan, port: p0, mac: 02:00:00:00:00:01, addresses: [10.0.0.1/24]}]
generators: [{name: g0, port: p0, core: 0, rate_pps: 1000}]
modules:
  in: {kind: port_in, port: p0, worker: w0}
  lookup: {kind: lookup, window: 5us}
  ttl: {kind: ttl, trigger: 8, age_limit: 50us}
  out: {kind: sink}
  spare: {kind: sink}
connect:
  - in -> lookup:3 -> ttl -> out
  - ttl:drop -> spare
flows:
  - {name: f, path: [in, lookup:3, ttl, out], delay_slo: 1ms}
"""


def test_builder_equals_yaml() -> None:
    document = load(SAME)
    assert document.problems == []
    assert bare(build().to_json()) == bare(document.pipeline)


def test_builder_knows_its_lines() -> None:
    places = build().to_json()["source_map"]
    first = Path(__file__).read_text().splitlines().index('    p.worker("w0", 1)') + 1
    assert places["workers[0]"] == f"{__file__}:{first}"
    assert places["modules.in"] == f"{__file__}:{first + 4}"
    assert places["edges[2]"] == f"{__file__}:{first + 8}"


def test_builder_refuses_duplicates_and_bad_durations() -> None:
    p = Pipeline("x")
    p.module("a", "ttl")
    with pytest.raises(BadInput, match="'a' exists already"):
        p.module("a", "sink")
    with pytest.raises(BadInput, match="'soon' is not a duration"):
        p.module("b", "ttl", age_limit="soon")


def test_saved_yaml_loads_to_the_same() -> None:
    pipeline = bare(build().to_json())
    assert bare(load(to_yaml(pipeline)).pipeline) == pipeline


_TEXT = st.text(alphabet="ab: {}[],'\"#-\\\n\t.5us%é", max_size=8)
_JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(-10, 10**12), _TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b_c"]), inner, max_size=2),
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["x", "y", "a_b"]), _JSON, max_size=3))
def test_any_parameters_survive_saving(params: dict[str, Any]) -> None:
    def has_duration(value: Any) -> bool:
        from batchplane.base.units import parse_duration_ns

        if isinstance(value, dict):
            return any(map(has_duration, value.values()))
        return (
            any(map(has_duration, value))
            if isinstance(value, list)
            else parse_duration_ns(value) is not None
        )

    if not has_duration(params):  # text that is a duration becomes a number
        pipeline = {
            "version": 1,
            "name": "p",
            "modules": {"m": {"kind": "k", "params": params}},
            "edges": [],
        }
        assert bare(load(to_yaml(pipeline)).pipeline) == pipeline


@pytest.mark.parametrize("name", pipeline_names())
def test_shipped_pipelines_load_and_survive_saving(name: str) -> None:
    document = load_pipeline(name)
    assert document.problems == []
    text = to_yaml(document.pipeline)
    assert bare(load(text).pipeline) == bare(document.pipeline)


def test_l2l3_grows_with_its_params() -> None:
    small = load_pipeline("l2l3", {"nexthops": "2", "fib_size": "10"}).pipeline
    assert sum(module["kind"] == "ttl" for module in small["modules"].values()) == 2
    assert len(small["modules"]["lookup_0"]["params"]["routes"]) == 10
    big = load_pipeline("l2l3", {"branches": "4", "nexthops": "8"}).pipeline
    assert sum(module["kind"] == "ipv4_lookup" for module in big["modules"].values()) == 4
    assert len(big["flows"]) == 32


def test_python_l2l3_is_the_yaml_one() -> None:
    if not (ROOT / "pipelines" / "l2l3.py").exists():
        pytest.fail("pipelines/l2l3.py is missing")
    built = load_pipeline(str(ROOT / "pipelines" / "l2l3.py"), {"nexthops": "4"}).pipeline
    written = load_pipeline(str(ROOT / "pipelines" / "l2l3.yaml"), {"nexthops": "4"}).pipeline
    for section in ("modules", "ports", "generators", "flows"):
        assert built[section] == written[section], section
    assert sorted(map(str, built["edges"])) == sorted(map(str, written["edges"]))


def test_finding_pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "mine.yaml").write_text(SAME)
    assert find_pipeline("mine") == Path("pipelines/mine.yaml")
    assert find_pipeline("l2l3").name == "l2l3.yaml"
    with pytest.raises(BadInput, match="did you mean 'l2l3'"):
        find_pipeline("l2l4")
    with pytest.raises(BadInput, match="there is no such file"):
        find_pipeline("nowhere/x.yaml")


def test_python_pipelines(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(
        "from batchplane import Pipeline\n"
        "def build(n=1):\n    p = Pipeline('py')\n    for i in range(n):\n"
        "        p.module(f'm{i}', 'ttl')\n    return p\n"
    )
    document = load_pipeline(str(file), {"n": "3"})
    assert list(document.pipeline["modules"]) == ["m0", "m1", "m2"]
    assert document.where("modules.m2") == f"{file}:5"
    with pytest.raises(BadInput, match="unexpected keyword argument 'x'"):
        load_pipeline(str(file), {"x": "3"})
    file.write_text("def build():\n    return 1 // 0\n")
    with pytest.raises(BadInput, match=r"p.py:2: ZeroDivisionError"):
        load_pipeline(str(file))
    file.write_text("x = 1\n")
    with pytest.raises(BadInput, match=r"there is no build\(\)"):
        load_pipeline(str(file))
    file.write_text("def build():\n    return 1\n")
    with pytest.raises(BadInput, match="did not return a Pipeline"):
        load_pipeline(str(file))


def test_canonical_json_loads(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(build().to_json()))
    assert load_pipeline(str(file)).pipeline == build().to_json()
    with pytest.raises(BadInput, match="has no params"):
        load_pipeline(str(file), {"n": "1"})
    file.write_text("{\n oops}")
    with pytest.raises(BadInput, match="p.json:2: this is not JSON"):
        load_pipeline(str(file))
    file.write_text("[]")
    with pytest.raises(BadInput, match="not a canonical pipeline"):
        load_pipeline(str(file))


def test_overrides() -> None:
    assert parse_overrides(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(BadInput, match="'a' is not NAME=VALUE"):
        parse_overrides(["a", "b=1"])
