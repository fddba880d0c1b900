# SPDX-License-Identifier: BSD-3-Clause
"""show.py - the arguments of `show`, `explain`, `attach` and `trace`."""

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
            help="runtime, cores, buffers, flows, drops, ports, tables, egress, nat, sessions, "
            "graph, generators, slo, control, all",
        ),
    ] = "runtime",
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODULE | PORT | NODE | KEY=VALUE...]",
            help="a module (tables), a port (ports) or a node (egress); for nat: protocol, state, "
            "inside, outside, remote, limit; for sessions: seid, ue, limit; for egress: module, "
            "by (backlog, sojourn), limit",
        ),
    ] = None,
    name: Name = None,
    as_json: Json = False,
    is_dot: Annotated[bool, typer.Option("--dot", help="print the graph for Graphviz")] = False,
    is_watched: Annotated[bool, typer.Option("--watch", "-w", help="repeat until Ctrl-C")] = False,
    interval: Interval = 1.0,
) -> None:
    """Show exact counters of a running daemon."""
    if is_dot and what != "graph":
        raise BadInput(
            Problem(
                "--dot works only with `show graph`", "command line", "show", "show graph --dot"
            )
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
    """Explain each trigger, and where the delay of each flow comes from."""
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
    """Watch a running daemon live; it keeps running after Ctrl-C."""
    running.attach(find_daemon(name), WatchOptions(duration, interval), out(), errors())


@app.command()
def trace(
    count: Annotated[int, typer.Argument(min=1, max=10_000, help="number of packets")] = 1,
    expression: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="a tcpdump filter: 'udp port 53'")
    ] = "",
    name: Name = None,
    as_json: Json = False,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="how long to wait for packets")
    ] = 2.0,
) -> None:
    """Trace packets through the graph: path, time in buffers, drop reason."""
    packets = running.trace(find_daemon(name), count, expression, timeout)
    if as_json:
        print_json({"packets": packets})
    else:
        out().print(render_trace(packets))
