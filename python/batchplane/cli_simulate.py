# SPDX-License-Identifier: BSD-3-Clause
"""cli_simulate.py - the words of `batchplane simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .actions import completions
from .settings import parse_arguments

PipelineArg = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        autocompletion=completions("pipelines"),
        help="a file, or a name in pipelines/",
    ),
]
_EPILOG = (
    "A traffic file is `generators:` of a pipeline file, or a capture (.pcap); a machine file is "
    "JSON, see docs/simulator.md; scenarios: docs/scenarios.md."
)


Consoles = Callable[[], Console]


def add_to(app: typer.Typer, out: Consoles, errors: Consoles) -> None:
    """Adds the command; `out` and `errors` make its consoles."""

    @app.command("simulate", epilog=_EPILOG)
    def simulate_command(
        pipeline: PipelineArg,
        params: Annotated[
            list[str] | None,
            typer.Argument(metavar="[KEY=VALUE]...", help="the pipeline's params"),
        ] = None,
        duration: Annotated[
            str | None,
            typer.Option(
                "--duration",
                "-d",
                metavar="TIME",
                help="virtual time: 100ms, or seconds (default: the scenario's, or 1s)",
            ),
        ] = None,
        controller: Annotated[
            str,
            typer.Option("--controller", "-c", help="none, null, max, fixed(8)... or FILE.py"),
        ] = "none",
        compare: Annotated[
            str | None, typer.Option(metavar="NAMES", help="further controllers, such as max,null")
        ] = None,
        period: Annotated[str, typer.Option(metavar="TIME", help="of control")] = "10ms",
        settings: Annotated[
            list[str] | None,
            typer.Option(
                "--control", metavar="KEY=VALUE", help="a setting of controllers: percentile=0.99"
            ),
        ] = None,
        costs: Annotated[
            str | None,
            typer.Option(metavar="FILE|prior", help="of modules; made by `batchplane profile`"),
        ] = None,
        traffic: Annotated[
            Path | None, typer.Option(metavar="FILE", help="in place of the generators' own")
        ] = None,
        machine: Annotated[
            Path | None, typer.Option(metavar="FILE", help="costs of the loop, noise, stalls")
        ] = None,
        scenario: Annotated[
            Path | None, typer.Option(metavar="FILE", help="events over time")
        ] = None,
        sets: Annotated[
            list[str] | None,
            typer.Option("--set", "-s", metavar="SETTING", help="as for `set`"),
        ] = None,
        seeds: Annotated[int, typer.Option(min=1, max=10_000, help="runs of each")] = 1,
        jobs: Annotated[
            int | None, typer.Option("--jobs", "-j", min=1, help="processes (default: cores)")
        ] = None,
        plot: Annotated[
            Path | None, typer.Option(metavar="DIR", help="write figures there")
        ] = None,
        trace: Annotated[
            Path | None, typer.Option(metavar="FILE", help="single packets, .csv or .parquet")
        ] = None,
        trace_packets: Annotated[
            int, typer.Option(min=1, max=100_000_000, help="how many of them")
        ] = 100_000,
        json_file: Annotated[
            Path | None, typer.Option("--json-file", metavar="FILE", help="JSON besides the text")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text")] = False,
    ) -> None:
        """Run a pipeline in virtual time, with exact delays: no daemon, no DPDK, no root."""
        # Loaded here: other commands do without numpy.
        from .sim_command import SimulateOptions, simulate, split_controllers

        options = SimulateOptions(
            traffic,
            costs,
            machine,
            scenario,
            tuple(sets or ()),
            duration,
            period,
            tuple(dict.fromkeys(split_controllers(f"{controller},{compare or ''}"))),
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
