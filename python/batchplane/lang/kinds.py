# SPDX-License-Identifier: BSD-3-Clause
"""kinds.py - module kinds and their parameters, as the daemon describes them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..base.problems import RunFailed


@dataclass(frozen=True)
class ParamSpec:
    """One parameter of a module kind."""

    name: str
    type: str
    unit: str = ""
    default: Any = None  # None = required
    help: str = ""
    min: float = -9.2e18
    max: float = 9.2e18
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModuleKind:
    """One kind of module; `shape` is in_place, splitter, terminal, input or queue."""

    kind: str
    shape: str
    help: str = ""
    params: dict[str, ParamSpec] = field(default_factory=dict)
    gate_names: tuple[str, ...] = ()
    drops: tuple[dict[str, str], ...] = ()
    notes: str = ""


@dataclass(frozen=True)
class Kinds:
    """All kinds by name; empty if there is no daemon program to ask."""

    modules: dict[str, ModuleKind] = field(default_factory=dict)
    ports: dict[str, ModuleKind] = field(default_factory=dict)
    generator: ModuleKind | None = None
    schema: dict[str, Any] = field(default_factory=dict)  # as printed by the daemon


def parse_kinds(text: str) -> Kinds:
    """Parses the output of `batchplaned --modules`."""
    data = json.loads(text)
    entries = data.get("modules", data) if isinstance(data, dict) else data
    if isinstance(entries, dict):
        entries = [{"kind": kind, **entry} for kind, entry in entries.items()]
    whole = data if isinstance(data, dict) else {}
    generator = whole.get("generator")
    return Kinds(
        {str(entry["kind"]): _parse_kind(entry) for entry in entries},
        {str(entry["kind"]): _parse_kind(entry) for entry in whole.get("ports", [])},
        _parse_kind({"kind": "generator", **generator}) if generator else None,
        whole,
    )


def _parse_kind(entry: dict[str, Any]) -> ModuleKind:
    params = [_parse_param(param) for param in entry.get("params", [])]
    shape = str(entry.get("shape", "in_place")).replace("-", "_").lower()
    return ModuleKind(
        kind=str(entry["kind"]),
        shape={"inplace": "in_place"}.get(shape, shape),
        help=str(entry.get("help", "")),
        params={param.name: param for param in params},
        gate_names=tuple(entry.get("gate_names", entry.get("gates", ()))),
        drops=tuple(
            drop if isinstance(drop, dict) else {"name": str(drop)}
            for drop in entry.get("drops", ())
        ),
        notes=str(entry.get("notes", "")),
    )


def _parse_param(entry: dict[str, Any]) -> ParamSpec:
    lowest, highest = entry.get("min"), entry.get("max")
    return ParamSpec(
        name=str(entry["name"]),
        type=str(entry.get("type", "string")),
        unit=str(entry.get("unit") or ""),
        default=entry.get("default", entry.get("default_value")),
        help=str(entry.get("help", "")),
        min=-9.2e18 if lowest is None else float(lowest),
        max=9.2e18 if highest is None else float(highest),
        choices=tuple(entry.get("choices") or ()),
    )


@lru_cache(maxsize=4)
def load_kinds(daemon: Path) -> Kinds:
    """Asks the daemon program for its module kinds."""
    try:
        done = subprocess.run(
            [daemon, "--modules"], capture_output=True, text=True, timeout=20, check=True
        )
        return parse_kinds(done.stdout)
    except (OSError, subprocess.SubprocessError) as error:
        raise RunFailed(
            f"{daemon} --modules failed: {error}", "build it again: make build"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailed(
            f"{daemon} --modules printed something unexpected: {error}",
            "daemon and command line have different versions: make build",
        ) from error
