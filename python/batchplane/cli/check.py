# SPDX-License-Identifier: BSD-3-Clause
"""check.py - the arguments and output of `check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from ..base.consoles import out, print_json
from ..base.problems import Problem
from ..commands.check import admitted_flows, check_pipeline
from ..lang.canonical import Document
from .words import Json, Overrides, PipelineArg

if TYPE_CHECKING:
    from ..admission.admission import Admitted

app = typer.Typer()


@app.command()
def check(pipeline: PipelineArg, params: Overrides = None, as_json: Json = False) -> None:
    """Report every mistake in a pipeline without running it."""
    problems, plan, document, notes = check_pipeline(pipeline, params or [])
    is_good = all(problem.is_warning for problem in problems)
    admitted = admitted_flows(document) if is_good else []
    _checked(problems, plan, document, admitted, as_json, out())
    for note in [] if as_json else notes:
        out().print(note, soft_wrap=True)
    if any(not problem.is_warning for problem in problems):
        raise typer.Exit(2)


def _checked(
    problems: Sequence[Problem],
    plan: dict[str, Any],
    document: Document,
    admitted: Sequence[Admitted],
    as_json: bool,
    out: Console,
) -> None:
    """Prints the result of a check."""
    errors = [problem for problem in problems if not problem.is_warning]
    if as_json:
        answer = {
            "ok": not errors,
            "errors": [problem.as_json() for problem in problems],
            "plan": plan,
        }
        if admitted:
            answer["admission"] = [row.as_json() for row in admitted]
        print_json(answer)
        return
    for problem in problems:
        style, word = ("yellow", "warning: ") if problem.is_warning else ("bold red", "error: ")
        out.print(Text.assemble((word, style), problem.line()), soft_wrap=True)
    pipeline = document.pipeline
    size = (
        f"{len(pipeline.get('modules', {}))} modules, {len(pipeline.get('edges', []))} edges, "
        f"{len(pipeline.get('flows', []))} flows"
    )
    if errors:
        word = "mistake" if len(errors) == 1 else "mistakes"
        out.print(Text(f"{document.file}: {len(errors)} {word}", "bold"))
        return
    out.print(Text.assemble((f"{document.file} is good", "green"), f": {size}"))
    facts = [
        f"{key.replace('_', ' ')} {value}"
        for key, value in plan.items()
        if isinstance(value, (int, str))
    ]
    if facts:
        out.print(Text(", ".join(facts), "dim"))
    for row in admitted:
        out.print(Text(row.line(), "" if row.is_kept else "yellow"), soft_wrap=True)
