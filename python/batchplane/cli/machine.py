# SPDX-License-Identifier: BSD-3-Clause
"""machine.py - `demo` and `doctor`: what this machine can show, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ..base.consoles import out, print_json
from ..base.problems import BadInput, Problem, suggestion
from ..commands.doctor import Finding, examine
from ..demo.demos import DEMOS
from .words import Json, completions

app = typer.Typer()


@app.command()
def demo(
    what: Annotated[
        str, typer.Argument(autocompletion=completions("demos"), help="home-gateway, ipsec or bng")
    ] = "home-gateway",
) -> None:
    """Demonstrate a pipeline between Linux hosts in network namespaces, then clean up."""
    if what not in DEMOS:
        raise BadInput(
            Problem(
                f"there is no demonstration '{what}'",
                "command line",
                "demo",
                suggestion(what, DEMOS),
            )
        )
    DEMOS[what](out())


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check this machine for what slows the engine down, and show the command that fixes it."""
    _examined(examine(), as_json, out())


def _examined(findings: Sequence[Finding], as_json: bool, out: Console) -> None:
    """Prints the findings of doctor."""
    if as_json:
        print_json([finding.as_json() for finding in findings])
        return
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        word, style = ("ok  ", "green") if finding.is_ok else ("warn", "yellow")
        out.print(
            Text.assemble(
                (word, style), "  ", (f"{finding.topic:<{width}}", "bold"), f"  {finding.message}"
            ),
            soft_wrap=True,
        )
        if not finding.is_ok:
            out.print(Text(f"{'':<{width + 8}}{finding.remedy}", "cyan"), soft_wrap=True)
    warnings = sum(not finding.is_ok for finding in findings)
    out.print(
        Text(
            "no problems found"
            if not warnings
            else f"{warnings} of {len(findings)} checks found room for improvement",
            "dim",
        )
    )
