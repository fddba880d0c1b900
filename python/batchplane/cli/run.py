# SPDX-License-Identifier: BSD-3-Clause
"""run.py - the arguments of `run` and `start`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ..base.consoles import errors, out, print_json
from ..commands.run import run_pipeline
from ..commands.start import RunOptions, start_pipeline
from ..control.options import ControlOptions
from ..daemon.process import Daemon, StartOptions
from ..show.live import WatchOptions
from .words import (
    ControlCosts,
    ControllerName,
    ControlPeriod,
    Cores,
    Duration,
    Interval,
    Json,
    Memory,
    NewName,
    NoProfile,
    Overrides,
    PipelineArg,
    Sets,
    Slos,
)

app = typer.Typer()


@app.command()
def run(
    pipeline: PipelineArg,
    params: Overrides = None,
    duration: Duration = None,
    sets: Sets = None,
    name: NewName = None,
    cores: Cores = None,
    memory_mb: Memory = None,
    controller: ControllerName = None,
    period: ControlPeriod = None,
    slos: Slos = None,
    costs: ControlCosts = None,
    is_unprofiled: NoProfile = False,
    interval: Interval = 1.0,
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="timed events; see docs/scenarios.md")
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS", help="also simulate the run, with costs from a file or `prior`"
        ),
    ] = None,
    as_json: Json = False,
    is_quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="print only the final report")
    ] = False,
) -> None:
    """Run a pipeline with a live view, and print a report when it stops."""
    options = RunOptions(
        StartOptions(name, cores, memory_mb),
        WatchOptions(duration, interval, is_quiet or as_json),
        tuple(sets or ()),
        as_json,
        scenario,
        ControlOptions(controller, period, tuple(slos or ()), costs, not is_unprofiled),
        simulate,
    )
    code = run_pipeline(pipeline, params or [], options, out(), errors())
    raise typer.Exit(code)


@app.command()
def start(
    pipeline: PipelineArg,
    params: Overrides = None,
    sets: Sets = None,
    name: NewName = None,
    cores: Cores = None,
    memory_mb: Memory = None,
    controller: ControllerName = None,
    period: ControlPeriod = None,
    slos: Slos = None,
    costs: ControlCosts = None,
    is_unprofiled: NoProfile = False,
    as_json: Json = False,
) -> None:
    """Start a pipeline in the background: watch it with `attach`, end it with `stop`."""
    options = RunOptions(
        StartOptions(name, cores, memory_mb),
        sets=tuple(sets or ()),
        control=ControlOptions(controller, period, tuple(slos or ()), costs, not is_unprofiled),
    )
    daemon = start_pipeline(pipeline, params or [], options, errors())
    _started(daemon, as_json, out())


def _started(daemon: Daemon, as_json: bool, out: Console) -> None:
    """Prints the name of the new daemon and how to watch and stop it."""
    if as_json:
        print_json(daemon.as_json())
        return
    out.print(Text.assemble(("started ", "green"), (daemon.name, "bold"), f" (pid {daemon.pid})"))
    out.print(
        Text(
            f"watch it: batchplane attach {daemon.name}   stop it: batchplane stop {daemon.name}",
            "dim",
        )
    )
