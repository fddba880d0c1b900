# SPDX-License-Identifier: BSD-3-Clause
"""profile.py - the arguments of `profile`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..base.problems import BadInput, Problem
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
            help="modules or kinds of the pipeline; without --pipeline, kinds in small test setups",
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            "-p",
            autocompletion=completions("pipelines"),
            help="profile the modules of this pipeline, with its tables and traffic",
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="KEY=VALUE", help="a parameter of the pipeline; repeatable"
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", "-o", help="write the costs to this JSON file")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="plot rate and service time: .png, .pdf, .svg")
    ] = None,
    is_quick: Annotated[
        bool, typer.Option("--quick", help="15 ms per module instead of 300: less accurate")
    ] = False,
    are_devices: Annotated[
        bool,
        typer.Option(
            "--devices",
            help="what batches take on the worker, on another core, on OpenCL devices: minutes",
        ),
    ] = False,
    watts: Annotated[
        list[str] | None,
        typer.Option(
            "--watts",
            metavar="DEVICE=IDLE:ACTIVE",
            help="with --devices: what a device draws, declared; repeatable",
        ),
    ] = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Measure the cost of modules and of the engine, per batch and per packet."""
    if are_devices:
        if plot is not None:
            raise BadInput(Problem("--plot is for costs", "command line", fix="leave it out"))
        from ..commands.profile_devices import DeviceRequest, profile_on_devices

        request = DeviceRequest(
            tuple(modules or ()), pipeline, tuple(params or ()), file, tuple(watts or ()),
            is_quick, cores, as_json,
        )  # fmt: skip
        profile_on_devices(request, out(), errors())
        return
    if watts:
        raise BadInput(Problem("--watts is for devices", "command line", fix="give --devices"))
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
