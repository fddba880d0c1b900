# SPDX-License-Identifier: BSD-3-Clause
"""check.py - the arguments and output of `check`."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.text import Text

from ..base.consoles import out, print_json
from ..commands.check import Checked, check_pipeline
from .words import Json, Overrides, PipelineArg

app = typer.Typer()


@app.command()
def check(pipeline: PipelineArg, params: Overrides = None, as_json: Json = False) -> None:
    """Report every mistake in a pipeline without running it."""
    checked = check_pipeline(pipeline, params or [])
    _print(checked, as_json, out())
    for note in [] if as_json else checked.notes:
        out().print(note, soft_wrap=True)
    if not checked.is_good:
        raise typer.Exit(2)


def _print(checked: Checked, as_json: bool, out: Console) -> None:
    errors = [problem for problem in checked.problems if not problem.is_warning]
    if as_json:
        answer = {
            "ok": not errors,
            "errors": [problem.as_json() for problem in checked.problems],
            "plan": checked.plan,
        }
        if checked.admitted:
            answer["admission"] = [row.as_json() for row in checked.admitted]
        print_json(answer)
        return
    for problem in checked.problems:
        style, word = ("yellow", "warning: ") if problem.is_warning else ("bold red", "error: ")
        out.print(Text.assemble((word, style), problem.line()), soft_wrap=True)
    document = checked.document
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
        for key, value in checked.plan.items()
        if isinstance(value, (int, str))
    ]
    if facts:
        out.print(Text(", ".join(facts), "dim"))
    for row in checked.admitted:
        out.print(Text(row.line(), "" if row.is_kept else "yellow"), soft_wrap=True)
