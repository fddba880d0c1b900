# SPDX-License-Identifier: BSD-3-Clause
"""plan.py - the arguments of `batchplane plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..changes.arguments import parse_arguments
from .words import completions

app = typer.Typer()
EPILOG = (
    "Example: plan gateway nexthops=64 --slo 80us --rate 5M. Without a pipeline: plan "
    "--branches 16 --batchiness 0.3 --burst 1.1 --slo 100us. docs/planning.md explains the method."
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
    typer.Argument(metavar="[KEY=VALUE]...", help="parameters of the pipeline"),
]
Traffic = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|saturated",
        help="generators or a capture in place of the pipeline's own, or inputs that never are "
        "empty (default where it has none)",
    ),
]
Slos = Annotated[
    list[str] | None,
    typer.Option(
        "--slo", metavar="[FLOW=]TIME", help="delay SLO: 80us for all flows, 'a_*=80us' for some"
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|prior|epyc|paper",
        help="module costs from `batchplane profile` (default: the saved profile, else prior)",
    ),
]
Rate = Annotated[
    str | None,
    typer.Option("--rate", metavar="PPS", help="offered rate: how many cores does it need?"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--control", metavar="KEY=VALUE", help="a controller setting: percentile=0.99"),
]
Branches = Annotated[
    int | None,
    typer.Option(
        "--branches", min=1, max=1024, help="plan for this many equal branches, without a pipeline"
    ),
]
Batchiness = Annotated[
    float | None,
    typer.Option(
        "--batchiness", min=0.0, max=1.0,
        help="share of a branch's one-packet cost that each further packet adds (0.3)",
    ),
]  # fmt: skip
Burst = Annotated[
    float | None,
    typer.Option(
        "--burst", min=1.0, max=256.0, help="mean number of consecutive packets for one branch (1)"
    ),
]
Work = Annotated[
    str | None,
    typer.Option("--work", metavar="TIME", help="cost of a one-packet batch in a branch (500ns)"),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="plot rate against SLO: .png, .pdf, .svg"),
]
Devices = Annotated[
    bool,
    typer.Option(
        "--devices", help="what each set of the pipeline's devices would carry, and its watts"
    ),
]
DeviceProfile = Annotated[
    Path | None,
    typer.Option(
        "--device-profile",
        metavar="FILE",
        help="of `batchplane profile --devices --out FILE`, or h200, which comes with it "
        "(default: what is saved for this CPU)",
    ),
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
    are_devices: Devices = False,
    device_profile: DeviceProfile = None,
    as_json: Json = False,
) -> None:
    """Predict what one core will carry at given SLOs, and what would change it, without running."""
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
        are_devices,
        device_profile,
    )
    raise typer.Exit(plan(pipeline, params or [], options, out(), errors()))
