# SPDX-License-Identifier: BSD-3-Clause
"""test_model.py - the short form of models: its long form, and messages about mistakes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from batchplane.base.problems import BadInput
from batchplane.slo.model import whole_model

COST = {"cost_per_batch_ns": 4e6, "cost_per_pkt_ns": 3e5}


def short(**more: Any) -> dict[str, Any]:
    return {
        "modules": [{"name": name, **COST} for name in ("infer", "decode", "clean")],
        "flows": [
            {"name": "photos", "path": ["decode", "infer"], "slo_ns": 8e7},
            {"name": "texts", "path": ["clean", "infer"]},
        ],
        **more,
    }


def test_ways_become_edges_from_an_input() -> None:
    model = whole_model(short())
    assert [row["name"] for row in model["modules"]] == ["infer", "decode", "clean", "(input of worker)"]  # fmt: skip
    assert [row["has_buffer"] for row in model["modules"]] == [True, True, True, False]
    ways = [(edge["from"], edge["gate"], edge["to"]) for edge in model["edges"]]
    assert ways == [(3, 0, 1), (1, 0, 0), (3, 1, 2), (2, 0, 0)]
    assert model["flows"][0] == {"name": "photos", "path": [3, 1, 0], "slo_ns": 80_000_000, "legs": []}  # fmt: skip
    # In path order, not in list order.
    assert model["tasks"] == [{"worker": 0, "inputs": [3], "modules": [1, 2, 0]}]
    assert whole_model(model) == model


def test_workers_have_an_input_and_a_task_each() -> None:
    modules = [{"name": name, "worker": f"on {name}", **COST} for name in ("a", "b")]
    flows = [{"name": name, "path": [name]} for name in ("a", "b")]
    model = whole_model({"modules": modules, "flows": flows})
    assert model["workers"] == ["on a", "on b"]
    assert [task["inputs"] for task in model["tasks"]] == [[2], [3]]
    assert [flow["path"] for flow in model["flows"]] == [[2, 0], [3, 1]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (short(modules=[]), "modules: is no list of objects, or is empty"),
        (short(flows=[{"path": ["infer"]}]), "flows: has a row without a name"),
        (short(batch_limit=8), "model.batch_limit: is unknown (did you mean 'batch_limit_pkts'?)"),
        (short(flows=[{"name": "f", "path": ["infr"]}]), "flows.f.path: there is no module 'infr' (did you mean 'infer'?)"),
        (short(flows=[{"name": "f", "path": "infer"}]), "flows.f.path: is no list of modules"),
        (short(flows=[{"name": "f", "path": ["infer"], "slo_ns": -1}]), "flows.f.slo_ns: is -1"),
        (short(modules=[{"name": "infer"}]), "modules.infer: has no cost (give cost_per_batch_ns and cost_per_pkt_ns, or table_ns)"),
        (short(modules=[{"name": "infer", **COST}] * 2), "modules: 'infer' is there twice"),
        (short(flows=[{"name": "f", "path": ["infer", "decode", "infer"]}]), "flows: go round in a circle over infer, decode"),
        (
            {"modules": [{"name": n, "worker": n, **COST} for n in "ab"], "flows": [{"name": "f", "path": ["a", "b"]}]},
            "flows.f.path: crosses workers 'a' and 'b' (a controller for each worker, with a part of slo_ns)",
        ),
    ],
)  # fmt: skip
def test_mistakes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        whole_model(given)
