# SPDX-License-Identifier: BSD-3-Clause
"""test_execution.py - explicit scheduling in pipeline files and live settings."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import load

from batchplane.base.problems import BadInput
from batchplane.changes.settings import parse_settings
from batchplane.lang.kinds import Kinds
from batchplane.native.check import check_document
from batchplane.sim.edits import edits_of_sets

PIPELINE = """\
engine:
  execution: EXECUTION
modules:
  in: {kind: source}
  ttl: {kind: ttl, MODULE}
  out: {kind: sink}
connect:
  - in -> ttl -> out
"""


def pipeline(execution: str, module: str = "weight: 3") -> str:
    return PIPELINE.replace("EXECUTION", execution).replace("MODULE", module)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("wfq", {"mode": "wfq"}),
        ("{mode: wfq}", {"mode": "wfq"}),
        ("{mode: wfq, backpressure: on}", {"mode": "wfq", "backpressure": "on"}),
        ("{mode: wfq, backpressure: off}", {"mode": "wfq", "backpressure": "off"}),
        (
            "{mode: wfq, backpressure: early_drop, schedule_by: count, queue_pkts: 128}",
            {
                "mode": "wfq",
                "backpressure": "early_drop",
                "schedule_by": "count",
                "queue_pkts": 128,
            },
        ),
        (
            "{mode: wfq, backpressure: on, queueing_time_threshold: 100us}",
            {"mode": "wfq", "backpressure": "on", "queueing_time_threshold_ns": 100_000},
        ),
        ("run_to_completion", {"mode": "run_to_completion"}),
    ],
)
def test_written_forms(written: str, canonical: dict[str, Any], kinds: Kinds) -> None:
    document = load(pipeline(written, "weight: 3, queue_pkts: 200"), kinds)
    assert document.problems == []
    assert document.pipeline["engine"] == {"execution": canonical}
    ttl = document.pipeline["modules"]["ttl"]
    assert (ttl["weight"], ttl["queue_pkts"], ttl["params"]) == (3, 200, {})


@pytest.mark.parametrize(
    ("execution", "module", "line"),
    [
        ("wfk", "weight: 3", "p.yaml:2: engine.execution.mode: 'wfk' does not fit here: "
         "run_to_completion or wfq"),
        ("{mode: wfq, backpressure: maybe}", "weight: 3",
         "p.yaml:2: engine.execution.backpressure: 'maybe' does not fit here: off, on or "
         "early_drop"),
        ("{mode: wfq, input_weight: 0}", "weight: 3",
         "p.yaml:2: engine.execution.input_weight: 0 is out of range: at least 1"),
        ("wfq", "weight: 0", "p.yaml:5: modules.ttl.weight: 0 is out of range: at least 1"),
        ("wfq", "weight: 1025",
         "p.yaml:5: modules.ttl.weight: 1025 is out of range: at most 1024"),
        ("wfq", "queue_pkts: 5000",
         "p.yaml:5: modules.ttl.queue_pkts: 5000 is out of range: at most 4096"),
    ],
)  # fmt: skip
def test_one_line_each(execution: str, module: str, line: str, kinds: Kinds) -> None:
    document = load(pipeline(execution, module), kinds)
    assert [problem.line() for problem in check_document(document, kinds)] == [line]


def test_a_weight_set_live() -> None:
    names = {"module": ["ttl_0", "ttl_1"], "flow": [], "generator": [], "port": []}
    sets = parse_settings(["ttl_*.weight=8"], names)
    assert sets == [{"what": "weight", "module": f"ttl_{i}", "weight": 8} for i in (0, 1)]
    assert edits_of_sets(sets) == [{"buffers": {"ttl_0": {"weight": 8}, "ttl_1": {"weight": 8}}}]
    for value in ("0", "1025", "-1", "half"):
        with pytest.raises(BadInput, match="is not a weight"):
            parse_settings([f"ttl_0.weight={value}"], names)
