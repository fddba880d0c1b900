# SPDX-License-Identifier: BSD-3-Clause
"""canonical_shape.py - checks the structure of canonical JSON that somebody wrote, so that its
readers can rely on sections and entries. Values are checked as in any pipeline."""

from __future__ import annotations

from typing import Any

from ..base.problems import BadInput, Problem

_MAPPINGS = ("modules", "ports", "devices")
_LISTS = ("edges", "flows", "generators", "workers", "interfaces")
_PLACES = "source_map"


def canonical_shape(given: dict[str, Any], file: str) -> dict[str, Any]:
    """The same without nulls, which count as not written. Raises BadInput."""
    problems: list[Problem] = []
    pipeline = _without_nulls(given)
    for section in (*_MAPPINGS, *_LISTS):
        if section not in pipeline:
            continue
        entries = pipeline[section]
        if section in _MAPPINGS and isinstance(entries, dict):
            pipeline[section] = {
                name: _entry(entry, f"{section}.{name}", file, problems)
                for name, entry in entries.items()
            }
        elif section in _LISTS and isinstance(entries, list):
            pipeline[section] = [
                _entry(entry, f"{section}[{i}]", file, problems) for i, entry in enumerate(entries)
            ]
        else:
            wanted = "a mapping" if section in _MAPPINGS else "a list"
            problems.append(Problem(f"expected {wanted}", file, section))
    places = pipeline.get(_PLACES, {})
    if not isinstance(places, dict) or not all(isinstance(v, str) for v in places.values()):
        problems.append(
            Problem(f"{_PLACES} says by text where each key stands", file, _PLACES, "leave it out")
        )
    if problems:
        raise BadInput(problems)
    pipeline.setdefault("name", "pipeline")
    for edge in pipeline.get("edges", []):
        edge.setdefault("gate", 0)
    return pipeline


def _entry(given: Any, key: str, file: str, problems: list[Problem]) -> dict[str, Any]:
    if not isinstance(given, dict):
        problems.append(Problem("expected a mapping", file, key))
        return {}
    entry = _without_nulls(given)
    if not isinstance(entry.get("params", {}), dict):
        problems.append(Problem("expected a mapping", file, f"{key}.params"))
    return entry


def _without_nulls(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}
