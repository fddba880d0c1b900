# SPDX-License-Identifier: BSD-3-Clause
"""arguments.py - KEY=VALUE words as arguments of module commands and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.problems import BadInput, Problem
from ..base.units import parse_duration_ns
from ..lang.yaml_loader import resolve_plain


def parse_arguments(words: Sequence[str]) -> dict[str, Any]:
    """Turns KEY=VALUE words into the arguments of a module's command; a dotted key nests."""
    result: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            fix = "for example prefix=10.0.0.0/8 next_hop=1"
            raise BadInput(Problem(f"'{word}' is not KEY=VALUE", "command line", word, fix))
        duration_ns = parse_duration_ns(value)
        if duration_ns is not None:
            result[key if key.endswith("_ns") else f"{key}_ns"] = duration_ns
        else:
            result[key] = resolve_plain(value)
    return result
