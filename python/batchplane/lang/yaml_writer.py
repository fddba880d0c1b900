# SPDX-License-Identifier: BSD-3-Clause
"""yaml_writer.py - turns canonical JSON back into a pipeline file for people."""

from __future__ import annotations

import json
import re
from typing import Any

from ..base.units import duration_text, parse_duration_ns
from .yaml_loader import resolve_plain

_LINE_LENGTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*|[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")


def to_yaml(pipeline: dict[str, Any]) -> str:
    """The same pipeline as YAML; loading it gives the same canonical form."""
    lines = [f"name: {_flow(pipeline.get('name', 'pipeline'))}"]
    if pipeline.get("engine"):
        lines.append(f"engine: {_flow(_durations(pipeline['engine'], is_own=True))}")
    if pipeline.get("controller"):
        kept = {
            key: value
            for key, value in pipeline["controller"].items()
            if key not in ("costs", "costs_origin", "hop_costs")
        }
        lines.append(f"controller: {_flow(_durations(kept, is_own=True))}")
    if pipeline.get("placement"):
        lines += _entry("placement:", _placement(pipeline["placement"]))
    for section in ("workers", "interfaces"):
        lines += _list(section, pipeline.get(section, []))
    for section in ("ports", "devices"):
        lines += _map(
            section,
            {
                name: {"kind": entry["kind"], **_durations(entry.get("params", {}))}
                for name, entry in pipeline.get(section, {}).items()
            },
        )
    lines += _map(
        "modules", {name: _module(module) for name, module in pipeline["modules"].items()}
    )
    lines += _connect(pipeline.get("edges", []))
    lines += _list("flows", [_durations(flow, is_own=True) for flow in pipeline.get("flows", [])])
    generators = [
        {
            **{key: value for key, value in entry.items() if key != "params"},
            **_durations(entry.get("params", {})),
        }
        for entry in pipeline.get("generators", [])
    ]
    return "\n".join([*lines, *_list("generators", generators)]) + "\n"


def _placement(placement: dict[str, Any]) -> dict[str, Any]:
    plain = _durations(placement, is_own=True)
    if "apps" in plain:
        plain["apps"] = {name: _durations(app, is_own=True) for name, app in plain["apps"].items()}
    return plain


def _module(module: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"kind": module["kind"]}
    if module.get("trigger_pkts"):
        result["trigger"] = module["trigger_pkts"]
    if module.get("age_limit_ns") is not None:
        result["age_limit"] = duration_text(module["age_limit_ns"])
    if module.get("worker") is not None:
        result["worker"] = module["worker"]
    for key in ("weight", "queue_pkts", "poll_pkts"):
        if module.get(key):
            result[key] = module[key]
    if module.get("device"):
        result["device"] = _durations(module["device"], is_own=True)
    if module.get("in_queue"):
        result["in_queue"] = module["in_queue"]
    return {**result, **_durations(module.get("params", {}))}


def _durations(entry: dict[str, Any], is_own: bool = False) -> dict[str, Any]:
    """Turns x_ns: 5000 into x: 5us; parameters keep x_ns: 5us, so that they stay unambiguous."""
    result = {}
    for key, value in entry.items():
        if (
            key.endswith("_ns")
            and isinstance(value, int)
            and not isinstance(value, bool)
            and value >= 0
        ):
            result[key.removesuffix("_ns") if is_own else key] = duration_text(value)
        else:
            result[key] = value
    return result


def _connect(edges: list[dict[str, Any]]) -> list[str]:
    """Joins edges to chains: an edge extends the chain if it starts where the chain ends."""
    chains: list[str] = []
    end = None
    for edge in edges:
        step = edge["from"] if edge["gate"] == 0 else f"{edge['from']}:{edge['gate']}"
        if chains and end == edge["from"]:
            chains[-1] = f"{chains[-1].removesuffix(edge['from'])}{step} -> {edge['to']}"
        else:
            chains.append(f"{step} -> {edge['to']}")
        end = edge["to"]
    return ["connect:", *[f"  - {chain}" for chain in chains]] if chains else []


def _map(section: str, entries: dict[str, Any]) -> list[str]:
    lines = [line for name, entry in entries.items() for line in _entry(f"  {name}:", entry)]
    return [f"{section}:", *lines] if entries else []


def _list(section: str, entries: list[Any]) -> list[str]:
    return [f"{section}:", *[f"  - {_flow(entry)}" for entry in entries]] if entries else []


def _entry(start: str, value: Any) -> list[str]:
    """One line if it is short; else a line for each key or element."""
    line = f"{start} {_flow(value)}"
    if len(line) <= _LINE_LENGTH or not value or not isinstance(value, (dict, list)):
        return [line]
    indent = " " * (len(start) - len(start.lstrip()) + 2)
    if isinstance(value, list):
        return [start, *[f"{indent}- {_flow(item)}" for item in value]]
    inner = [_entry(f"{indent}{_flow(str(key))}:", item) for key, item in value.items()]
    return [start, *[text for lines in inner for text in lines]]


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_flow(str(key))}: {_flow(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and (
            isinstance(resolve_plain(value), str) or parse_duration_ns(value) is not None
        )
        return value if is_plain else json.dumps(value)
    return json.dumps(value)
