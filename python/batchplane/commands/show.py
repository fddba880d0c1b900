# SPDX-License-Identifier: BSD-3-Clause
"""show.py - what `batchplane show`, `explain`, `attach` and `trace` request from a daemon."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from ..base.consoles import print_json
from ..base.interrupts import Interrupted, interruptible
from ..base.problems import BadInput, Problem, suggestion
from ..changes.arguments import parse_arguments
from ..daemon.client import Client, told_as_input
from ..daemon.process import Daemon
from ..show.cores import collect_cores
from ..show.devices import collect_devices
from ..show.egress import collect_egress
from ..show.graph import graph_dot
from ..show.live import WatchOptions, watch
from ..show.nat import collect_nat
from ..show.sessions import collect_sessions
from ..show.tables import WHAT, render_show
from ..show.view import facts_line


@dataclass(frozen=True)
class ShowOptions:
    what: str = "runtime"
    items: tuple[str, ...] = ()
    as_json: bool = False
    is_dot: bool = False
    watch_s: float | None = None


# Collected from several answers; further words are filters.
_COLLECTED = {
    "cores": collect_cores,
    "nat": collect_nat,
    "sessions": collect_sessions,
    "devices": collect_devices,
    "egress": collect_egress,
}


def show_running(daemon: Daemon, options: ShowOptions, out: Console) -> None:
    """Prints one answer of `show`, or repeats it until Ctrl-C if watch_s is set."""
    if options.what not in WHAT:
        raise BadInput(
            Problem(
                f"'{options.what}' cannot be shown",
                "command line",
                "show",
                suggestion(options.what, WHAT),
            )
        )
    args = _item_args(options)
    with Client(daemon.socket) as client, interruptible():
        try:
            while True:
                if options.what in _COLLECTED:
                    data = _COLLECTED[options.what](client, args)
                else:
                    data = client.show(options.what, **args)
                if options.watch_s is not None and out.is_terminal:
                    out.clear()
                _print_show(data, options, out, daemon.pipeline)
                if options.watch_s is None:
                    return
                time.sleep(options.watch_s)
        except Interrupted:
            return


def _item_args(options: ShowOptions) -> dict[str, Any]:
    if options.what in _COLLECTED:
        is_node = options.what == "egress" and options.items and "=" not in options.items[0]
        first = {"node": options.items[0]} if is_node else {}
        return first | parse_arguments(options.items[1 if is_node else 0 :])
    if not options.items:
        return {}
    key = {"tables": "module", "ports": "port"}.get(options.what)
    if key is None or len(options.items) > 1:
        raise BadInput(
            Problem(
                f"show {options.what} takes no {' '.join(options.items)}",
                "command line",
                "show",
                "use show tables MODULE, show ports PORT, show egress NODE, show nat or "
                "show sessions KEY=VALUE...",
            )
        )
    return {key: options.items[0]}


def _print_show(data: Any, options: ShowOptions, out: Console, name: str) -> None:
    if options.is_dot:
        print(graph_dot(data, name))
    elif options.as_json:
        print_json(data, is_one_line=options.watch_s is not None)
    else:
        out.print(render_show(options.what, data))


def explain(daemon: Daemon, name: str | None) -> dict[str, Any]:
    """Why triggers have their values: of a flow, a module, or all."""
    with Client(daemon.socket) as client, told_as_input():
        answer: dict[str, Any] = client.request("explain", name=name or "")
    return answer


def attach(daemon: Daemon, options: WatchOptions, out: Console, errors: Console) -> None:
    """Shows the live view of a daemon, which keeps running afterwards."""
    with Client(daemon.socket) as client, interruptible():
        errors.print(Text(facts_line(client.hello())), soft_wrap=True, style="dim")
        watch(client, out, options)


def trace(daemon: Daemon, count: int, expression: str, timeout_s: float) -> list[dict[str, Any]]:
    """Traces packets in a running daemon."""
    with Client(daemon.socket) as client:
        return client.trace(count, expression, int(timeout_s * 1e9))
