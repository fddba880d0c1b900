# SPDX-License-Identifier: BSD-3-Clause
"""control.py - the arguments of `control`, which runs a controller of your own."""

from __future__ import annotations

from typing import Annotated

import typer

from ..base.consoles import errors
from ..base.problems import BadInput, Problem
from ..base.units import parse_duration_ns
from ..control.decide import ControlRequest
from ..control.decide import control as decide
from ..control.options import ControlOptions
from ..daemon.process import find_daemon
from .words import ControlCosts, ControlPeriod, Name

app = typer.Typer()


@app.command()
def control(
    controller: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:NAME]", help="a class with step(period), or a factory for one"
        ),
    ],
    name: Name = None,
    period: ControlPeriod = None,
    limit: Annotated[str, typer.Option(metavar="TIME", help="time limit for one step")] = "1s",
    costs: ControlCosts = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="controller.SETTING=VALUE", help="more controller settings"),
    ] = None,
) -> None:
    """Control a running daemon with your own controller, until Ctrl-C."""
    limit_ns = parse_duration_ns(limit)
    if not limit_ns or limit_ns < 1_000_000:
        raise BadInput(
            Problem(f"'{limit}' is not a time limit", "command line", "--limit", "1ms or more")
        )
    words = (*ControlOptions(controller, period, (), costs).program_words(), *(settings or ()))
    request = ControlRequest(controller, limit_ns / 1e9, words)
    raise typer.Exit(decide(find_daemon(name), request, errors()))
