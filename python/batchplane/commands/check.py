# SPDX-License-Identifier: BSD-3-Clause
"""check.py - what `batchplane check` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass
class Checked:
    """A pipeline that was looked at."""

    document: Document
    problems: list[Problem]
    plan: dict[str, Any] = field(default_factory=dict)  # the daemon's
    notes: list[str] = field(default_factory=list)  # on chosen weights
    # Whether packet schedulers can meet the flows' SLOs; empty if that cannot be determined.
    admitted: list[Admitted] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return all(problem.is_warning for problem in self.problems)


def check_pipeline(name: str, overrides: Sequence[str]) -> Checked:
    """Every problem of a pipeline, and what the daemon says about one without mistakes."""
    try:
        program = find_program()
    except RunFailed as error:
        message = f"{error.message}: module kinds and parameters were not checked"
        missing = Problem(message, fix=error.fix, is_warning=True)
        document = load_pipeline(name, parse_overrides(overrides))
        return Checked(document, [*check_document(document, Kinds()), missing])
    document = load_pipeline(name, parse_overrides(overrides), load_kinds(program))
    # With the ways of flows in the same answer, tables of very many flows are built only once.
    problems, answer = check_all(document, program, "--grouped")
    checked = Checked(document, problems, answer.get("plan") or {})
    if not checked.is_good:
        return checked
    if problem := passed_over(document.pipeline):
        checked.problems.append(problem)
    routes = answer.get("routes")  # where flows with SLOs come to schedulers
    try:
        checked.notes = fit_weights(document, program, routes)
    except BadInput as error:
        checked.problems += error.problems
    # Where there are devices, the daemon is asked for the ways of flows by themselves.
    if checked.is_good and (routes is not None or document.pipeline.get("devices")):
        from ..admission.admission import admission  # needs numpy, most pipelines do not

        checked.admitted = admission(document, program, None if checked.notes else routes)
    return checked
