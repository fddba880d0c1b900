# SPDX-License-Identifier: BSD-3-Clause
"""daemons.py - the arguments and output of `list` and `stop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..base.consoles import out, print_json
from ..base.plain_table import plain_table
from ..base.units import short_duration
from ..daemon.process import Daemon, find_daemon, list_daemons, stop_daemon
from .words import Json, completions

app = typer.Typer()


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the running daemons."""
    _daemons(list_daemons(), as_json, out())


@app.command()
def stop(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completions("daemons"),
            help="which daemon (optional if only one is running)",
        ),
    ] = None,
    is_all: Annotated[bool, typer.Option("--all", help="stop all of your daemons")] = False,
    as_json: Json = False,
) -> None:
    """Stop a daemon, and report whether all packets are accounted for."""
    daemons = list_daemons() if is_all else [find_daemon(name)]
    _stopped([(daemon, stop_daemon(daemon)) for daemon in daemons], as_json, out())


def _daemons(found: Sequence[Daemon], as_json: bool, out: Console) -> None:
    """Prints the running daemons."""
    if as_json:
        print_json([daemon.as_json() for daemon in found])
    elif not found:
        out.print("no daemon is running")
    else:
        table = plain_table("<name", "<pipeline", "pid", "uptime", "<version")
        for daemon in found:
            table.add_row(
                daemon.name,
                daemon.pipeline,
                str(daemon.pid),
                short_duration(daemon.uptime_ns),
                daemon.version,
            )
        out.print(table)


def _stopped(results: Sequence[tuple[Daemon, dict[str, Any]]], as_json: bool, out: Console) -> None:
    """Prints the final reports of stopped daemons."""
    if as_json:
        print_json([{"name": daemon.name, "report": report} for daemon, report in results])
        return
    for daemon, report in results:
        text = Text.assemble(("stopped ", "green"), (daemon.name, "bold"))
        balance = report.get("balance")
        if balance:
            text.append(f": {balance['sent_pkts']} sent, {balance['dropped_pkts']} dropped")
            if not balance.get("is_exact", True):
                text.append("; packet counts do not add up", "red")
        out.print(text)
    if not results:
        out.print("no daemon is running")
