# SPDX-License-Identifier: BSD-3-Clause
"""compare.py - the words of `batchplane compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..commands.start import RunOptions
from ..control.options import ControlOptions
from ..daemon.process import StartOptions
from .words import PipelineArg

app = typer.Typer()
EPILOG = "For example: compare gateway saturate=true --slo '*=40us' --controllers null,full,optimal"

Params = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="the pipeline's params")
]
Controllers = Annotated[str, typer.Option(metavar="NAMES", help="in this order")]
Slos = Annotated[
    list[str] | None,
    typer.Option("--slo", metavar="FLOW=TIME", help="a promised delay; patterns: '*=40us'"),
]
Each = Annotated[
    float, typer.Option("--each", min=0.5, metavar="SECONDS", help="for each controller")
]
Period = Annotated[str | None, typer.Option(metavar="TIME", help="of control (default 10ms)")]
Costs = Annotated[
    str | None, typer.Option(metavar="FILE", help="a profile (default: kept, or measured now)")
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="SETTING", help="as for `set`")
]
NoProfile = Annotated[bool, typer.Option("--no-profile", help="no measuring at the start")]
Simulate = Annotated[
    str | None,
    typer.Option(metavar="COSTS", help="the same simulated: costs `kept`, `prior` or a file"),
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
    period: Period = None,
    costs: Costs = None,
    is_unprofiled: NoProfile = False,
    sets: Sets = None,
    simulate: Simulate = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Run one controller after the other on the same load, and tell what each makes of it."""
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
    )
    raise typer.Exit(compare(pipeline, params or [], options, out(), errors()))
