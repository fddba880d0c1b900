# SPDX-License-Identifier: BSD-3-Clause
"""check.py - what `batchplane check` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base.problems import Problem, RunFailed
from ..daemon.process import find_program
from ..lang.canonical import Document
from ..lang.check import check_all
from ..lang.kinds import Kinds, load_kinds
from ..lang.load import load_pipeline, parse_overrides


def check_pipeline(
    name: str, overrides: Sequence[str]
) -> tuple[list[Problem], dict[str, Any], Document]:
    """Every problem of a pipeline, and the daemon's plan for it."""
    program: Path | None = None
    missing: list[Problem] = []
    try:
        program = find_program()
    except RunFailed as error:
        message = f"{error.message}: kinds and parameters were not checked"
        missing.append(Problem(message, fix=error.fix, is_warning=True))
    kinds = load_kinds(program) if program else Kinds()
    document = load_pipeline(name, parse_overrides(overrides), kinds)
    problems, plan = check_all(document, kinds, program)
    return problems + missing, plan, document
