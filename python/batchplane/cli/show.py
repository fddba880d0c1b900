# SPDX-License-Identifier: BSD-3-Clause
"""show.py - the words of `show`, `explain`, `attach` and `trace`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..base.consoles import errors, out, print_json
from ..base.problems import BadInput, Problem
from ..commands import show as running
from ..commands.show import ShowOptions
from ..daemon.process import find_daemon
from ..show.control import render_explain
from ..show.live import WatchOptions
from ..show.report import render_trace
from .words import Duration, Interval, Json, Name, completions

app = typer.Typer()


@app.command()
def show(
    what: Annotated[
        str,
        typer.Argument(
            autocompletion=completions("show"),
            help="runtime, buffers, flows, drops, ports, tables, nat, sessions, graph, "
            "generators, slo, control, all",
        ),
    ] = "runtime",
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODULE | PORT | KEY=VALUE...]",
            help="a module (tables), a port (ports), for nat: protocol, state, inside, outside, "
            "remote, limit; for sessions: seid, ue, limit",
        ),
    ] = None,
    name: Name = None,
    as_json: Json = False,
    is_dot: Annotated[bool, typer.Option("--dot", help="graph only: for Graphviz")] = False,
    is_watched: Annotated[
        bool, typer.Option("--watch", "-w", help="again and again until Ctrl-C")
    ] = False,
    interval: Interval = 1.0,
) -> None:
    """Show exact counts of a running daemon."""
    if is_dot and what != "graph":
        raise BadInput(
            Problem("--dot is for the graph", "command line", "show", "show graph --dot")
        )
    options = ShowOptions(
        what, tuple(items or ()), as_json, is_dot, interval if is_watched else None
    )
    running.show_running(find_daemon(name), options, out())


@app.command()
def explain(
    what: Annotated[
        str | None, typer.Argument(metavar="[FLOW | MODULE]", help="default: all")
    ] = None,
    name: Name = None,
    as_json: Json = False,
) -> None:
    """Tell why each trigger is what it is, and where the delay of each flow goes."""
    answer = running.explain(find_daemon(name), what)
    if as_json:
        print_json(answer)
    else:
        out().print(render_explain(answer))


@app.command()
def attach(
    name: Annotated[str | None, typer.Argument(autocompletion=completions("daemons"))] = None,
    duration: Duration = None,
    interval: Interval = 1.0,
) -> None:
    """Watch a running daemon live; Ctrl-C leaves it running."""
    running.attach(find_daemon(name), WatchOptions(duration, interval), out(), errors())


@app.command()
def trace(
    count: Annotated[int, typer.Argument(min=1, max=10_000, help="how many packets")] = 1,
    expression: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="as for tcpdump: 'udp port 53'")
    ] = "",
    name: Name = None,
    as_json: Json = False,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="to wait for them")
    ] = 2.0,
) -> None:
    """Follow packets through the graph: path, waits in buffers, drop reason."""
    packets = running.trace(find_daemon(name), count, expression, timeout)
    if as_json:
        print_json({"packets": packets})
    else:
        out().print(render_trace(packets))
