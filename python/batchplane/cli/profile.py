# SPDX-License-Identifier: BSD-3-Clause
"""profile.py - the words of `profile`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..commands.profile import ProfileRequest
from ..commands.profile import profile as run_profile
from .words import Cores, Json, completions

app = typer.Typer()


@app.command()
def profile(
    modules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODULE...]",
            help="modules or kinds of the pipeline; without one, kinds in small set-ups",
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            "-p",
            autocompletion=completions("pipelines"),
            help="measure its modules, with its tables and traffic",
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="KEY=VALUE", help="a param of the pipeline; repeatable"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", "-o", help="write the costs there, as JSON")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="draw rate and service time: .png, .pdf, .svg")
    ] = None,
    is_quick: Annotated[
        bool, typer.Option("--quick", help="15 ms a module instead of 300: less certain")
    ] = False,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Measure what modules cost per batch and per packet, and the engine around them."""
    run_profile(
        ProfileRequest(
            tuple(modules or ()),
            pipeline,
            tuple(params or ()),
            file,
            plot,
            is_quick,
            cores,
            as_json,
        ),
        out(),
        errors(),
    )
