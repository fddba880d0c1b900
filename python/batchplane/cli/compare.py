# SPDX-License-Identifier: BSD-3-Clause
"""compare.py - the arguments of `batchplane compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..commands.start import RunOptions
from ..control.options import ControlOptions
from ..daemon.process import StartOptions
from .words import PipelineArg

app = typer.Typer()
EPILOG = "Example: compare gateway saturate=true --slo '*=40us' --controllers null,full,optimal"

Params = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="parameters of the pipeline")
]
Controllers = Annotated[
    str, typer.Option(metavar="NAMES", help="controllers to run, in this order")
]
Slos = Annotated[
    list[str] | None,
    typer.Option("--slo", metavar="FLOW=TIME", help="delay SLO of a flow; patterns work: '*=40us'"),
]
Each = Annotated[
    float,
    typer.Option("--each", min=0.5, metavar="SECONDS", help="how long to run each controller"),
]
Turns = Annotated[
    int,
    typer.Option(
        min=1,
        help="in how many turns, of a second at least: all meet the same moments of the machine",
    ),
]
Period = Annotated[str | None, typer.Option(metavar="TIME", help="control period (default 10ms)")]
Costs = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="module costs (default: the saved profile, or measure now)"),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="SETTING", help="a live setting; see `set --help`"),
]
NoProfile = Annotated[bool, typer.Option("--no-profile", help="skip profiling at startup")]
Simulate = Annotated[
    str | None,
    typer.Option(metavar="COSTS", help="also simulate it, with costs `kept`, `prior` or a file"),
]
Cores = Annotated[str | None, typer.Option(help="cores to use, such as 0,1")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text")]


@app.command("compare", epilog=EPILOG)
def compare_command(
    pipeline: PipelineArg,
    params: Params = None,
    controllers: Controllers = "null,max,optimal",
    slos: Slos = None,
    each: Each = 5.0,
    turns: Turns = 3,
    period: Period = None,
    costs: Costs = None,
    is_unprofiled: NoProfile = False,
    sets: Sets = None,
    simulate: Simulate = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Run several controllers in turn on the same load, and compare the results."""
    from ..compare.compare import compare
    from ..compare.options import CompareOptions
    from ..control.names import split_controllers

    options = CompareOptions(
        RunOptions(
            StartOptions(None, cores),
            sets=tuple(sets or ()),
            control=ControlOptions(None, period, tuple(slos or ()), costs, not is_unprofiled),
        ),
        tuple(dict.fromkeys(split_controllers(controllers))),
        each,
        as_json,
        simulate,
        turns,
    )
    raise typer.Exit(compare(pipeline, params or [], options, out(), errors()))
