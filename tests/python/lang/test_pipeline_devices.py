# SPDX-License-Identifier: BSD-3-Clause
"""test_pipeline_devices.py - the notation for modules on devices and for placement."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import load

from batchplane.base.measured_devices import measured_device
from batchplane.lang.kinds import Kinds
from batchplane.lang.pipeline import Pipeline
from batchplane.lang.yaml_writer import to_yaml

TEXT = """\
devices:
  gpu:
    kind: simulated
    laws: {ttl: {batch: 20us, pkt_ns: 5}}
placement: {policy: latency, period: 50ms, apps: {ttl: {budget: 300us}}}
modules:
  in: {kind: source}
  ttl: {kind: ttl, device: DEVICE}
  out: {kind: sink}
connect:
  - in -> ttl -> out
"""


def canonical(text: str, kinds: Kinds) -> dict[str, Any]:
    document = load(text, kinds)
    assert document.problems == [], [problem.line() for problem in document.problems]
    return document.pipeline


@pytest.mark.parametrize(
    ("written", "device"),
    [
        ("gpu", {"on": ["gpu"]}),
        ("[gpu, inline]", {"on": ["gpu", "inline"]}),
        (
            "{on: [gpu], batch_pkts: 512, age_limit: 80us}",
            {"on": ["gpu"], "batch_pkts": 512, "age_limit_ns": 80_000},
        ),
    ],
)
def test_where_a_module_runs(kinds: Kinds, written: str, device: dict[str, Any]) -> None:
    pipeline = canonical(TEXT.replace("DEVICE", written), kinds)
    assert pipeline["modules"]["ttl"]["device"] == device
    assert pipeline["devices"]["gpu"] == {
        "kind": "simulated",
        "params": {"laws": {"ttl": {"batch_ns": 20_000, "pkt_ns": 5}}},
    }
    assert pipeline["placement"] == {
        "policy": "latency",
        "period_ns": 50_000_000,
        "apps": {"ttl": {"budget_ns": 300_000}},
    }


def test_what_is_saved_is_read_again(kinds: Kinds) -> None:
    pipeline = canonical(TEXT.replace("DEVICE", "{on: [gpu], age_limit: 80us}"), kinds)
    again = canonical(to_yaml(pipeline), kinds)
    for part in ("devices", "placement", "modules"):
        assert again[part] == pipeline[part]


def test_a_policy_alone_will_do(kinds: Kinds) -> None:
    text = TEXT.replace("DEVICE", "gpu")
    line = next(line for line in text.splitlines() if line.startswith("placement"))
    assert canonical(text.replace(line, "placement: power"), kinds)["placement"] == {
        "policy": "power"
    }
    assert "placement" not in canonical(text.replace(line, "placement: ''"), kinds)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{on: [gpu], batch_pkts: 20000}", "20000 is out of range: at most 16384"),
        ("{on: []}", "the list is empty"),
        ("{on: [gpu], idle: never}", "release or hold"),
        ("{on: [gpu], batch: 3}", "unknown key 'batch'"),
    ],
)
def test_invalid_devices(kinds: Kinds, written: str, message: str) -> None:
    problems = load(TEXT.replace("DEVICE", written), kinds).problems
    assert any(message in problem.line() for problem in problems), problems


def test_the_builder_says_the_same(kinds: Kinds) -> None:
    p = Pipeline("p")
    p.device("gpu", "simulated", laws={"ttl": {"batch_ns": 20_000, "pkt_ns": 5}})
    source, sink = p.module("in", "source"), p.module("out", "sink")
    ttl = p.module("ttl", "ttl", device={"on": ["gpu"], "age_limit": "80us"})
    source >> ttl >> sink
    written = canonical(TEXT.replace("DEVICE", "{on: [gpu], age_limit: 80us}"), kinds)
    assert p.to_json()["devices"] == written["devices"]
    assert p.to_json()["modules"]["ttl"] == written["modules"]["ttl"]


def test_a_simulated_device_like_one_that_was_measured(kinds: Kinds) -> None:
    laws = "laws: {ttl: {batch: 20us, pkt_ns: 5}}"
    text = TEXT.replace("DEVICE", "gpu").replace(laws, "like: h200\n    idle_w: 7\n    " + laws)
    params = canonical(text, kinds)["devices"]["gpu"]["params"]
    measured = measured_device("h200")
    assert {"dpi", "digest", "classify"} <= set(measured["laws"])
    assert 0 < measured["off_w"] <= measured["idle_w"] <= measured["active_w"]
    assert params["laws"] == {**measured["laws"], "ttl": {"batch_ns": 20_000, "pkt_ns": 5}}
    assert params["idle_w"] == 7 and "like" not in params
    p = Pipeline("p")
    own_laws = {"ttl": {"batch_ns": 20_000, "pkt_ns": 5}}
    p.device("gpu", "simulated", like="h200", idle_w=7, laws=own_laws)
    assert p.to_json()["devices"]["gpu"]["params"] == params
    for like, fix in (("h20", "did you mean 'h200'?"), ("gtx", "one of: h200")):
        # Its laws are those of another then, so that nobody misses them as well.
        document = load(text.replace("h200", like).replace(laws, ""), kinds)
        (problem,) = document.problems
        assert problem.line() == (
            f"p.yaml:4: devices.gpu.like: no profile of a device '{like}' comes with this program"
            f" ({fix})"
        )
        params = document.pipeline["devices"]["gpu"]["params"]
        assert params["laws"] and "like" not in params
