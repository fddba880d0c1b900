# SPDX-License-Identifier: BSD-3-Clause
"""test_limits.py - Python's models of a pipeline and the C++ reader allow the same numbers: at both
bounds, and one beyond them."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from batchplane.lang.kinds import Kinds
from batchplane.lang.schema import (
    ControllerModel,
    EngineModel,
    ExecutionModel,
    FlowModel,
    GeneratorModel,
    InterfaceModel,
    ModuleModel,
    WorkerModel,
)
from batchplane.native.loader import extension_path, load_native

ROOT = Path(__file__).resolve().parents[3]
PIPELINE: dict[str, Any] = {
    "version": 1,
    "name": "bounds",
    # Its own core, and the smallest queues that hold two batches of one packet.
    "engine": {"batch_pkts": 1, "execution": {"low_watermark_percent": 0}},
    "workers": [{"name": "w"}],
    "ports": {"p": {"kind": "ring", "params": {}}},
    "interfaces": [{"name": "i"}],
    "modules": {"in": {"kind": "source", "params": {}}, "out": {"kind": "sink", "params": {}}},
    "edges": [{"from": "in", "gate": 0, "to": "out"}],
    "flows": [{"name": "f", "path": ["in", "out"]}],
    "generators": [{"name": "g", "port": "p", "params": {}}],
    "controller": {"name": "full"},
}
# For each model: its place in the pipeline, and the other fields that it needs.
PLACES: list[tuple[type[BaseModel], tuple[Any, ...], dict[str, Any]]] = [
    (EngineModel, ("engine",), {}),
    (ExecutionModel, ("engine", "execution"), {}),
    (WorkerModel, ("workers", 0), {"name": "w"}),
    (InterfaceModel, ("interfaces", 0), {"name": "i"}),
    (ModuleModel, ("modules", "out"), {"kind": "sink"}),
    (FlowModel, ("flows", 0), {"name": "f", "path": ["in", "out"]}),
    (GeneratorModel, ("generators", 0), {"name": "g", "port": "p"}),
    (ControllerModel, ("controller",), {"name": "full"}),
]


def rules_of(field: dict[str, Any]) -> dict[str, Any]:
    """The rules for an integer, also if the field is optional."""
    options = [field, *field.get("anyOf", [])]
    return next((each for each in options if each.get("type") == "integer"), {})


def numbers() -> Iterator[Any]:
    """Every whole number of every model."""
    for model, place, others in PLACES:
        for name, field in model.model_json_schema()["properties"].items():
            rules = rules_of(field)
            if rules:
                yield pytest.param(model, place, others, name, rules, id=f"{place[0]}-{name}")


def is_read_by_python(model: type[BaseModel], others: dict[str, Any], name: str, n: int) -> bool:
    try:
        model.model_validate({**others, name: n})
    except ValidationError:
        return False
    return True


def is_read_by_cpp(place: tuple[Any, ...], name: str, n: int) -> bool:
    """Whether no mistake about that number's range is reported; other mistakes do not matter."""
    pipeline = copy.deepcopy(PIPELINE)
    at: Any = pipeline
    for key in place:
        at = at[key]
    at[name] = n
    errors, _ = load_native().check_pipeline(pipeline, Kinds().schema)
    ranges = ("is out of range", "expected a core number")
    return not any(any(words in message for words in ranges) for _, message, _ in errors)


@pytest.mark.skipif(
    extension_path() is None,
    reason="NOT RUN: the extension is not built: tools/build.sh run native",
)
@pytest.mark.parametrize(("model", "place", "others", "name", "rules"), list(numbers()))
def test_both_read_the_same_numbers(
    model: type[BaseModel],
    place: tuple[Any, ...],
    others: dict[str, Any],
    name: str,
    rules: dict[str, Any],
) -> None:
    assert {"minimum", "maximum"} <= set(rules), "each number has its limits"
    least, most = rules["minimum"], rules["maximum"]
    for n, is_allowed in ((least, True), (most, True), (least - 1, False), (most + 1, False)):
        assert is_read_by_python(model, others, name, n) == is_allowed, n
        if n == -1 and name == "core":
            continue  # documents use it for a core that is not given
        if n < 2**63:  # Python never passes longer ones
            assert is_read_by_cpp(place, name, n) == is_allowed, n


def test_the_limits_are_those_of_the_header() -> None:
    spec = importlib.util.spec_from_file_location("make_limits", ROOT / "tools/make_limits.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.MODULE.read_text() == made.module_text(), "run tools/make_limits.py"
