# SPDX-License-Identifier: BSD-3-Clause
"""check.py - what `batchplane check` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.problems import Problem, RunFailed
from ..daemon.process import find_program
from ..lang.canonical import Document
from ..lang.check import check_all
from ..lang.kinds import Kinds, load_kinds
from ..lang.load import load_pipeline, parse_overrides
from ..native.check import check_document
from .admission import Admitted, admission


def check_pipeline(
    name: str, overrides: Sequence[str]
) -> tuple[list[Problem], dict[str, Any], Document]:
    """Every problem of a pipeline, and the daemon's plan for it."""
    try:
        program = find_program()
    except RunFailed as error:
        message = f"{error.message}: module kinds and parameters were not checked"
        missing = Problem(message, fix=error.fix, is_warning=True)
        document = load_pipeline(name, parse_overrides(overrides))
        return [*check_document(document, Kinds()), missing], {}, document
    document = load_pipeline(name, parse_overrides(overrides), load_kinds(program))
    problems, plan = check_all(document, program)
    return problems, plan, document


def admitted_flows(document: Document) -> list[Admitted]:
    """Whether packet schedulers leave flows what they are promised; empty where nobody knows."""
    try:
        return admission(document, find_program())
    except RunFailed:
        return []
