# SPDX-License-Identifier: BSD-3-Clause
"""keys.py - the inputs that determine a cost: kind and parameters, without names and addresses."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Names of other objects: which one it is does not change the cost.
_NAMES = frozenset({"port", "interface", "name"})
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}(/\d{1,2})?")
_IPV6 = re.compile(r"[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*(/\d{1,3})?")
_FULL_PREFIX = re.compile(r"/(\d+)$")


def params_key(kind: str, params: Mapping[str, Any]) -> str:
    """Equal for modules of one kind whose parameters differ only in names and addresses."""
    text = json.dumps([kind, _plain(params)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any, key: str = "") -> Any:
    if key in _NAMES:
        return "*"
    if isinstance(value, Mapping):
        return {name: _plain(entry, str(name)) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        # Tables: only the number, form and order of entries matter.
        plain = [_plain(entry) for entry in value]
        return [[entry, len(list(group))] for entry, group in itertools.groupby(plain)]
    return _plain_text(value) if isinstance(value, str) else value


def _plain_text(text: str) -> str:
    if _MAC.fullmatch(text):
        return "mac"
    for pattern, name in ((_IPV4, "ipv4"), (_IPV6, "ipv6")):
        if pattern.fullmatch(text):
            length = _FULL_PREFIX.search(text)
            return f"{name}/{length[1]}" if length else name
    return text


def groups_of(modules: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Groups of modules of a canonical pipeline with the same cost, in the pipeline's order."""
    groups: dict[str, list[str]] = {}
    for name, module in modules.items():
        key = params_key(str(module["kind"]), module.get("params", {}))
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def pipeline_key(pipeline: Mapping[str, Any]) -> str:
    """A hash of everything that costs depend on: not names, buffers, SLOs or file positions."""
    modules = {
        name: {"kind": module["kind"], "params": module.get("params", {})}
        for name, module in pipeline.get("modules", {}).items()
    }
    parts = {key: pipeline.get(key) for key in ("ports", "interfaces", "edges", "generators")}
    batch_pkts = pipeline.get("engine", {}).get("batch_pkts")
    text = json.dumps([modules, parts, batch_pkts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """This machine's CPU with family and model, because names alone are not unique."""
    try:
        first = cpuinfo.read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        return "unknown"
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in pairs}
    if "model name" not in facts:
        return "unknown"
    family, model = facts.get("cpu family", "?"), facts.get("model", "?")
    return f"{facts['model name']} (family {family} model {model})"
