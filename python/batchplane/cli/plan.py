# SPDX-License-Identifier: BSD-3-Clause
"""plan.py - the words of `batchplane plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..changes.arguments import parse_arguments
from .words import completions

app = typer.Typer()
EPILOG = (
    "For example: plan gateway nexthops=64 --slo 80us --rate 5M; without a pipeline: plan "
    "--branches 16 --batchiness 0.3 --burst 1.1 --slo 100us. docs/planning.md says how it is known."
)

Pipeline = Annotated[
    str | None,
    typer.Argument(
        metavar="[PIPELINE]",
        autocompletion=completions("pipelines"),
        help="a file, or a name in pipelines/",
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="the pipeline's params"),
]
Traffic = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="generators or a capture, in place of the pipeline's own"),
]
Slos = Annotated[
    list[str] | None,
    typer.Option(
        "--slo", metavar="[FLOW=]TIME", help="a promised delay: 80us for all, 'a_*=80us' for some"
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|prior|paper",
        help="of modules; made by `batchplane profile` (default: the kept ones, else prior)",
    ),
]
Rate = Annotated[
    str | None,
    typer.Option("--rate", metavar="PPS", help="offered: how many cores would it need?"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--control", metavar="KEY=VALUE", help="of the controller: percentile=0.99"),
]
Branches = Annotated[
    int | None,
    typer.Option("--branches", min=1, max=1024, help="instead of a pipeline: equal branches"),
]
Batchiness = Annotated[
    float | None,
    typer.Option(
        "--batchiness", min=0.0, max=1.0,
        help="part of a branch's work for one packet that every further one costs again (0.3)",
    ),
]  # fmt: skip
Burst = Annotated[
    float | None,
    typer.Option("--burst", min=1.0, max=256.0, help="packets in a row to one branch, mean (1)"),
]
Work = Annotated[
    str | None,
    typer.Option("--work", metavar="TIME", help="of a branch for a batch of one (500ns)"),
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="rate against SLO: .png, .pdf, .svg")
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text")]


@app.command("plan", epilog=EPILOG)
def plan_command(
    pipeline: Pipeline = None,
    params: Params = None,
    traffic: Traffic = None,
    slos: Slos = None,
    costs: Costs = None,
    rate: Rate = None,
    settings: Settings = None,
    branches: Branches = None,
    batchiness: Batchiness = None,
    burst: Burst = None,
    work: Work = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Say what one core will carry at given SLOs, and what would change it: nothing is run."""
    from ..commands.plan import PlanOptions, plan
    from ..plan.knobs import Knobs

    options = PlanOptions(
        traffic,
        tuple(slos or ()),
        costs,
        rate,
        parse_arguments(settings or []),
        Knobs(branches, batchiness, burst, work),
        plot,
        as_json,
    )
    raise typer.Exit(plan(pipeline, params or [], options, out(), errors()))
