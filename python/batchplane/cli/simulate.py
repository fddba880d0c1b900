# SPDX-License-Identifier: BSD-3-Clause
"""simulate.py - the arguments of `batchplane simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..changes.arguments import parse_arguments
from .words import PipelineArg

app = typer.Typer()
EPILOG = (
    "A traffic file holds the `generators:` of a pipeline file, or is a capture (.pcap). A machine "
    "file is JSON: see docs/simulator.md. For scenarios, see docs/scenarios.md."
)

Params = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="parameters of the pipeline"),
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration",
        "-d",
        metavar="TIME",
        help="virtual time: 100ms, or seconds (default: the scenario's or capture's, else 1s)",
    ),
]
Controller = Annotated[
    str | None,
    typer.Option(
        "--controller",
        "-c",
        help="none, null, max, fixed(8)... or FILE.py (default: the pipeline's, else none)",
    ),
]
Compare = Annotated[
    str | None, typer.Option(metavar="NAMES", help="more controllers to run, such as max,null")
]
Period = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="control period (default: the pipeline's, else 10ms)"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--control", metavar="KEY=VALUE", help="a controller setting: percentile=0.99"),
]
Costs = Annotated[
    str | None,
    typer.Option(metavar="FILE|prior|epyc|paper", help="module costs from `batchplane profile`"),
]
Traffic = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|saturated",
        help="traffic in place of the pipeline's generators, or inputs that never are empty "
        "(default where it has none)",
    ),
]
MachineFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="machine model: loop costs, noise, stalls")
]
RunOrder = Annotated[
    str | None,
    typer.Option("--run-order", metavar="depth|deadline", help="order in which ready modules run"),
]
ScenarioFile = Annotated[Path | None, typer.Option(metavar="FILE", help="timed events")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="SETTING", help="a live setting; see `set --help`"),
]
Seeds = Annotated[int, typer.Option(min=1, max=10_000, help="number of runs per controller")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="parallel processes (default: one per core)"),
]
Plot = Annotated[Path | None, typer.Option(metavar="DIR", help="write figures to this folder")]
Trace = Annotated[
    Path | None, typer.Option(metavar="FILE", help="write a packet trace, .csv or .parquet")
]
TracePackets = Annotated[
    int, typer.Option(min=1, max=100_000_000, help="maximum number of packets in the trace")
]
JsonFile = Annotated[
    Path | None, typer.Option("--json-file", metavar="FILE", help="also write JSON to this file")
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text")]


@app.command("simulate", epilog=EPILOG)
def simulate_command(
    pipeline: PipelineArg,
    params: Params = None,
    duration: Duration = None,
    controller: Controller = None,
    compare: Compare = None,
    period: Period = None,
    settings: Settings = None,
    costs: Costs = None,
    traffic: Traffic = None,
    machine: MachineFile = None,
    run_order: RunOrder = None,
    scenario: ScenarioFile = None,
    sets: Sets = None,
    seeds: Seeds = 1,
    jobs: Jobs = None,
    plot: Plot = None,
    trace: Trace = None,
    trace_packets: TracePackets = 100_000,
    json_file: JsonFile = None,
    as_json: Json = False,
) -> None:
    """Simulate a pipeline in virtual time, with exact delays: no daemon, DPDK or root needed."""
    # Loaded here: other commands do not need numpy.
    from ..commands.simulate import SimulateOptions, simulate
    from ..control.names import split_controllers

    first = [None] if controller is None else split_controllers(controller)
    options = SimulateOptions(
        traffic,
        costs,
        machine,
        run_order,
        scenario,
        tuple(sets or ()),
        duration,
        period,
        tuple(dict.fromkeys([*first, *split_controllers(compare or "")])),
        parse_arguments(settings or []),
        seeds,
        jobs,
        plot,
        trace,
        trace_packets,
        json_file,
        as_json,
    )
    raise typer.Exit(simulate(pipeline, params or [], options, out(), errors()))
