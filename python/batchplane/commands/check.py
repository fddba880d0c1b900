# SPDX-License-Identifier: BSD-3-Clause
"""check.py - what `batchplane check` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..admission.weights import fit_weights
from ..base.problems import BadInput, Problem, RunFailed
from ..control.placement import passed_over
from ..daemon.process import find_program
from ..lang.canonical import Document
from ..lang.check import check_all
from ..lang.kinds import Kinds, load_kinds
from ..lang.load import load_pipeline, parse_overrides
from ..native.check import check_document

if TYPE_CHECKING:
    from ..admission.admission import Admitted


def check_pipeline(
    name: str, overrides: Sequence[str]
) -> tuple[list[Problem], dict[str, Any], Document, list[str]]:
    """Every problem of a pipeline, the daemon's plan for it, and notes on chosen weights."""
    try:
        program = find_program()
    except RunFailed as error:
        message = f"{error.message}: module kinds and parameters were not checked"
        missing = Problem(message, fix=error.fix, is_warning=True)
        document = load_pipeline(name, parse_overrides(overrides))
        return [*check_document(document, Kinds()), missing], {}, document, []
    document = load_pipeline(name, parse_overrides(overrides), load_kinds(program))
    problems, plan = check_all(document, program)
    notes: list[str] = []
    if all(problem.is_warning for problem in problems):
        if problem := passed_over(document.pipeline):
            problems = [*problems, problem]
        try:
            notes = fit_weights(document, program)
        except BadInput as error:
            problems = [*problems, *error.problems]
    return problems, plan, document, notes


def admitted_flows(document: Document) -> list[Admitted]:
    """Whether packet schedulers can meet the flows' SLOs; empty if that cannot be determined."""
    modules = document.pipeline.get("modules", {}).values()
    if all(module["kind"] != "egress" for module in modules):
        return []
    from ..admission.admission import admission  # needs numpy, most pipelines do not

    try:
        return admission(document, find_program())
    except RunFailed:
        return []
