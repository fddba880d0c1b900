# SPDX-License-Identifier: BSD-3-Clause
"""check_params.py - a module's kind and parameters against what the daemon says of its modules."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from ..base.problems import Problem, suggestion
from .canonical import Document
from .kinds import Kinds, ModuleKind, ParamSpec

_RESERVED = ("trigger", "age_limit", "worker", "kind")
_EXPECTED = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "list": "a list",
    "dict": "a mapping",
}


def check_module(
    document: Document, name: str, module: dict[str, Any], kinds: Kinds
) -> list[Problem]:
    """Unknown kind; unknown, missing and unfit parameters."""
    key = f"modules.{name}"
    kind = kinds.modules.get(module["kind"])
    if kind is None:
        fix = suggestion(module["kind"], kinds.modules, "`batchplane modules` lists the kinds")
        return [document.problem(f"{key}.kind", f"unknown kind '{module['kind']}'", fix)]
    problems = check_params(document, key, module["params"], kind, _RESERVED)
    if module.get("trigger_pkts") and kind.shape == "input":
        problems.append(
            document.problem(
                f"{key}.trigger_pkts",
                f"a {kind.kind} has no buffer",
                "set the trigger at a module after it",
            )
        )
    batch_pkts = document.pipeline.get("engine", {}).get("batch_pkts", 32)
    if module.get("trigger_pkts", 0) > batch_pkts:
        problems.append(
            document.problem(
                f"{key}.trigger_pkts",
                f"trigger {module['trigger_pkts']} is more than a batch",
                f"at most engine.batch_pkts = {batch_pkts}",
            )
        )
    return problems


def check_params(
    document: Document,
    key: str,
    params: dict[str, Any],
    kind: ModuleKind,
    reserved: tuple[str, ...] = (),
) -> list[Problem]:
    """Unknown, unfit and missing parameters of what stands at `key`."""
    problems = []
    for param, value in params.items():
        place = f"{key}.params.{param}"
        spec = kind.params.get(param)
        if spec is None:
            problems.append(
                document.problem(
                    place, f"unknown parameter '{param}'", _meant(param, kind, reserved)
                )
            )
        elif value is not None:
            wrong = misfit(spec, value)
            if wrong:
                problems.append(document.problem(place, wrong, spec.help))
    for spec in kind.params.values():
        if spec.default is None and params.get(spec.name) is None:
            problems.append(
                document.problem(key, f"'{spec.name}' is missing", f"add {spec.name}: {spec.help}")
            )
    return problems


def _meant(param: str, kind: ModuleKind, reserved: tuple[str, ...]) -> str:
    words = [*kind.params, *reserved]
    if not kind.params:
        return suggestion(param, words, f"{kind.kind} has no parameters")
    return suggestion(param, words, f"`batchplane modules {kind.kind}` lists them")


def misfit(spec: ParamSpec, value: Any) -> str:
    """Empty when the value fits, else what is wrong with it."""
    expected = _EXPECTED.get(spec.type)
    if expected is not None:
        if not _has_type(spec.type, value):
            return f"expected {expected}, found {_told(value)}"
        if spec.type in ("int", "float") and not spec.min <= value <= spec.max:
            unit = f" {spec.unit}" if spec.unit else ""
            return f"{value} is out of range {spec.min:.15g} .. {spec.max:.15g}{unit}"
        return ""
    if not isinstance(value, str):
        return f"expected {spec.type}, found {_told(value)}"
    if spec.choices and value not in spec.choices:
        return f"'{value}' is not one of {', '.join(spec.choices)}"
    return _unfit_address(spec.type, value)


def _has_type(name: str, value: Any) -> bool:
    if name == "bool":
        return isinstance(value, bool)
    if name in ("int", "float"):
        return isinstance(value, int if name == "int" else (int, float)) and not isinstance(
            value, bool
        )
    return isinstance(value, list if name == "list" else dict)


def _unfit_address(name: str, text: str) -> str:
    try:
        if name == "ipv4":
            ipaddress.IPv4Address(text)
        elif name == "ipv4_prefix":
            ipaddress.IPv4Network(text)
        elif name == "mac" and not re.fullmatch(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}", text):
            return f"'{text}' is no MAC address"
    except ValueError:
        if name == "ipv4":
            return f"'{text}' is no IPv4 address"
        return f"'{text}' is no IPv4 prefix such as 10.0.0.0/8 (host bits must be zero)"
    return ""


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    return f"'{value}'"
