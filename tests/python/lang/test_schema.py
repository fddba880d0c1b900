# SPDX-License-Identifier: BSD-3-Clause
"""test_schema.py - the editors' schema accepts what the loader accepts, by its own small
validator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from batchplane.lang.kinds import Kinds
from batchplane.lang.schema import editor_schema

ROOT = Path(__file__).resolve().parents[3]
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "boolean": bool,
    "null": type(None),
}


def violations(schema: Any, value: Any, top: dict[str, Any], path: str = "") -> list[str]:
    """Validates the part of JSON schema that editor_schema uses."""
    if schema is True or schema == {}:
        return []
    if "$ref" in schema:
        return violations(top["$defs"][schema["$ref"].rsplit("/", 1)[-1]], value, top, path)
    if "anyOf" in schema:
        found = [violations(option, value, top, path) for option in schema["anyOf"]]
        return [] if any(not errors for errors in found) else found[0]
    errors = []
    kind = schema.get("type")
    if kind and (
        not isinstance(value, _TYPES[kind])
        or (kind in ("integer", "number") and isinstance(value, bool))
    ):
        return [f"{path}: {value!r} is no {kind}"]
    if ("const" in schema and value != schema["const"]) or (
        "enum" in schema and value not in schema["enum"]
    ):
        errors.append(f"{path}: {value!r}")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        errors.append(f"{path}: {value!r} does not match")
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get(
        "maximum", value
    ):
        errors.append(f"{path}: {value!r} is out of range")
    if isinstance(value, list) and "items" in schema:
        errors += [
            e
            for i, item in enumerate(value)
            for e in violations(schema["items"], item, top, f"{path}[{i}]")
        ]
    if isinstance(value, dict):
        errors += _object_violations(schema, value, top, path)
    return errors


def _object_violations(
    schema: Any, value: dict[str, Any], top: dict[str, Any], path: str
) -> list[str]:
    errors = [f"{path}: {key} is missing" for key in schema.get("required", []) if key not in value]
    properties = schema.get("properties", {})
    for key, item in value.items():
        rule = properties.get(key, schema.get("additionalProperties", True))
        errors += (
            [f"{path}: {key} is unknown"]
            if rule is False
            else violations(rule, item, top, f"{path}.{key}")
        )
    for rule in schema.get("allOf", []):
        if not violations(rule["if"], value, top, path):
            errors += violations(rule["then"], value, top, path)
    return errors


def plain_yaml(text: str) -> Any:
    """YAML with ${...} kept as text; only YAML 1.2 numbers and booleans are converted."""
    hidden = str.maketrans("{},:", "\ue000\ue001\ue002\ue003")
    quoted = re.sub(r"\$\{[^}]*\}", lambda match: match[0].translate(hidden), text)
    return _restored(yaml.load(quoted, Loader=yaml.BaseLoader))


def _restored(value: Any) -> Any:
    from batchplane.lang.yaml_loader import resolve_plain

    if isinstance(value, dict):
        return {str(_restored(key)): _restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_restored(item) for item in value]
    text = (
        value.replace("\ue000", "{")
        .replace("\ue001", "}")
        .replace("\ue002", ",")
        .replace("\ue003", ":")
    )
    return text if "${" in text else resolve_plain(text)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "pipelines").glob("*.yaml")), ids=lambda path: path.stem
)
def test_shipped_pipelines_fit(path: Path) -> None:
    schema = editor_schema(Kinds())
    assert violations(schema, plain_yaml(path.read_text()), schema) == []


@pytest.mark.parametrize(
    ("value", "is_good"),
    [
        (
            {
                "modules": {
                    "a": {"kind": "ttl", "trigger": 8, "age_limit": "50us", "mend_checksum": True}
                }
            },
            True,
        ),
        ({"modules": {"a": {"kind": "ttl", "trigger": "${n}", "mend_checksum": "${x}"}}}, True),
        ({"modules": {"a": {"kind": "ttl", "mend": True}}}, False),
        ({"modules": {"a": {"kind": "tll"}}}, False),
        ({"modules": {"a": {"trigger": 8}}}, False),
        ({"modules": {"a": {"kind": "ttl", "mend_checksum": 3}}}, False),
        ({"modules": {"a": {"kind": "source", "burst_pkts": 300}}}, False),
        ({"modules": {"a": {"kind": "lookup", "mode": "slow"}}}, False),
        ({"modules": {"a": {"kind": "lookup", "window": "5us"}}}, True),
        ({"modules": {"a": {"kind": "lookup", "window": "5 hours"}}}, False),
        ({"flows": [{"name": "f", "path": ["a"], "delay_slo": "1ms"}]}, True),
        ({"flows": [{"name": "f", "path": ["a"], "slo": "1ms"}]}, False),
        ({"repeat": [{"as": "i", "count": 3, "modules": {"a": {"kind": "ttl"}}}]}, True),
        ({"repeat": [{"as": "i", "modules": {}}]}, False),
        ({"engine": {"stranding_limit": "1s", "batch_pkts": 64}}, True),
        ({"engine": {"batch_pkts": 300}}, False),
        ({"modulez": {}}, False),
    ],
)
def test_schema_judges(kinds: Kinds, value: Any, is_good: bool) -> None:
    schema = editor_schema(kinds)
    assert (violations(schema, value, schema) == []) == is_good


@pytest.mark.parametrize(
    ("element", "fits"),
    [
        ({"repeat": {"as": "c", "count": "${n}"}, "value": "check"}, True),
        ({"repeat": {"as": "c"}, "value": "check"}, False),
        ({"repeat": {"as": "c", "count": 1}}, False),
        ({"value": "check"}, False),
    ],
)
def test_an_element_of_a_list_may_repeat(element: dict[str, Any], fits: bool) -> None:
    schema = editor_schema(Kinds())
    pipeline = {"version": 1, "flows": [{"name": "f", "path": ["in", element, "out"]}]}
    assert (violations(schema, pipeline, schema) == []) == fits
