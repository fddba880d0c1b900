# SPDX-License-Identifier: BSD-3-Clause
"""live.py - watches a running daemon: a live view on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..base.interrupts import Interrupted
from ..daemon.client import Client
from .rates import Snapshot
from .view import plain_line, render_live


@dataclass(frozen=True)
class WatchOptions:
    """How long and how often; None: until interrupted."""

    duration_s: float | None = None
    interval_s: float = 1.0
    is_quiet: bool = False


def watch(client: Client, console: Console, options: WatchOptions) -> tuple[Snapshot, Snapshot]:
    """Shows the daemon until the time is over or Interrupted; returns first and last snapshot."""
    hello = client.hello()
    first: Snapshot = client.show("all")
    last = first
    try:
        for snapshot in _follow(client, console, options, hello, first):
            last = snapshot
    except Interrupted:
        pass
    return first, last


def _follow(
    client: Client, console: Console, options: WatchOptions, hello: dict[str, Any], first: Snapshot
) -> Iterator[Snapshot]:
    start_s = time.monotonic()
    before = first
    is_live = console.is_terminal and not options.is_quiet
    with (
        Live(console=console, auto_refresh=False, transient=True) if is_live else _nothing() as live
    ):
        while True:
            elapsed_s = time.monotonic() - start_s
            left_s = None if options.duration_s is None else options.duration_s - elapsed_s
            if left_s is not None and left_s <= 0:
                return
            time.sleep(
                options.interval_s if left_s is None else min(options.interval_s, max(left_s, 0.0))
            )
            now: Snapshot = client.show("all")
            yield now
            elapsed_s = time.monotonic() - start_s
            if isinstance(live, Live):
                live.update(
                    render_live(
                        before, now, hello, elapsed_s, options.duration_s, console.height - 1
                    ),
                    refresh=True,
                )
            elif not options.is_quiet:
                console.print(Text(plain_line(before, now, elapsed_s)), soft_wrap=True)
            before = now


@contextmanager
def _nothing() -> Iterator[None]:
    yield None
