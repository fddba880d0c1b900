# SPDX-License-Identifier: BSD-3-Clause
"""compare.py - one pipeline and load, several controllers in turn: how well each of them meets the
SLOs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..admission.weights import load_fitted
from ..base.consoles import print_json
from ..base.interrupts import Interrupted, interruptible
from ..base.problems import BadInput, Problem
from ..changes.settings import parse_settings, running_names
from ..commands.start import start_document
from ..control.options import with_costs
from ..daemon.client import Client
from ..daemon.process import stop_daemon
from ..show.rates import Snapshot
from ..show.view import facts_line
from .options import CompareOptions
from .rows import Row, merged, row_between
from .view import Stage, closing_lines, final_table, live_view, plain_line

# A new controller settles for this long; nothing is counted before.
_SETTLE_S = 0.5
_REFRESH_S = 0.25
_PLAIN_S = 1.0


def compare(
    name: str, overrides: Sequence[str], options: CompareOptions, out: Console, errors: Console
) -> int:
    """Runs all controllers and prints the results. Returns the exit code."""
    _check(options)
    with interruptible():
        document = load_fitted(name, overrides, errors)
        wanted = replace(options.run.control, controller=options.controllers[-1])
        run = replace(options.run, control=wanted)
        daemon = start_document(document, run, errors)
        try:
            with Client(daemon.socket) as client:
                errors.print(Text(facts_line(client.hello())), soft_wrap=True, style="dim")
                rows = _Comparison(client, options, document.pipeline, out).run()
        except Interrupted:
            stop_daemon(daemon)
            return 130
        except BaseException:
            stop_daemon(daemon)
            raise
    balance = stop_daemon(daemon).get("balance", {})
    if not rows:
        raise BadInput(Problem("nothing was measured", "command line", "--each"))
    data: dict[str, Any] = {
        "label": "measured",
        "pipeline": document.pipeline["name"],
        "controllers": [row.as_json() for row in rows],
        "balance": balance,
    }
    if not options.as_json:
        out.print(final_table(rows))
        for line in closing_lines(rows, balance):
            out.print(line, soft_wrap=True)
    if options.simulate is not None:
        # Loaded here: only this needs numpy and the extension.
        from .simulated import render_beside, simulate_rows

        twins, origin = simulate_rows(document, options, errors)
        data["simulated"] = [twin.as_json() for twin in twins]
        if not options.as_json:
            out.print(render_beside(rows, twins, origin))
    if options.as_json:
        print_json(data)
    return 0 if balance.get("is_exact", True) else 1


def _check(options: CompareOptions) -> None:
    problems = []
    if not options.controllers:
        problems.append(Problem("no controller is given", "command line", "--controllers"))
    for controller in options.controllers:
        if controller.partition(":")[0].endswith(".py"):
            message = f"'{controller}' runs in its own process"
            problems.append(Problem(message, "command line", "--controllers", "use `run`"))
    if problems:
        raise BadInput(problems)


class _Comparison:
    """The controllers in turn on one daemon, and the display meanwhile."""

    def __init__(
        self, client: Client, options: CompareOptions, pipeline: dict[str, Any], out: Console
    ):
        self._client = client
        self._options = options
        self._pipeline = pipeline
        self._out = out
        model = client.show("model")
        self._controlled = frozenset(
            str(module["name"]) for module in model["modules"] if module["is_controlled"]
        )
        self._turns: dict[str, list[Row]] = {}
        self._live: Live | None = None
        self._told_s = 0.0

    def run(self) -> list[Row]:
        """Runs all controllers in turn, several times."""
        is_live = self._out.is_terminal and not self._options.as_json
        if not is_live:
            self._go()
        else:
            with Live(console=self._out, auto_refresh=False, transient=True) as self._live:
                self._go()
        return [merged(turns) for turns in self._turns.values()]

    def _go(self) -> None:
        for _ in range(self._options.turns):
            for controller in self._options.controllers:
                self._turn(controller)

    def _turn(self, controller: str) -> None:
        self._choose(controller)
        self._watch(controller, None, _SETTLE_S)
        self._count_anew()
        first: Snapshot = self._client.show("all")
        last = self._watch(controller, first, self._turn_s)
        row = row_between(controller, first, last, self._controlled)
        self._turns.setdefault(controller, []).append(row)

    @property
    def _turn_s(self) -> float:
        return self._options.each_s / self._options.turns

    def _choose(self, controller: str) -> None:
        words = [f"controller={controller}"]
        given = self._options.run.control
        if given.period is not None:
            words.append(f"controller.period={given.period}")
        if given.costs is not None:
            words.append(f"controller.costs={given.costs}")
        (change,) = parse_settings(words, running_names(self._client))
        self._client.set([with_costs(change, self._pipeline)])

    def _count_anew(self) -> None:
        """Sets every SLO again, which resets its counters."""
        self._client.set(
            [
                {"what": "slo", "flow": row["flow"], "delay_slo_ns": row["slo_ns"]}
                for row in self._client.show("slo")
            ]
        )

    def _watch(self, controller: str, first: Snapshot | None, length_s: float) -> Snapshot:
        start_s = time.monotonic()
        snapshot: Snapshot = self._client.show("all")
        while (left_s := start_s + length_s - time.monotonic()) > 0:
            time.sleep(min(_REFRESH_S, left_s))
            before = first or snapshot
            snapshot = self._client.show("all")
            row = row_between(controller, before, snapshot, self._controlled)
            self._show(row, first is not None, time.monotonic() - start_s)
        return snapshot

    def _show(self, row: Row, is_counted: bool, elapsed_s: float) -> None:
        if self._live is None:
            self._tell(row, is_counted, elapsed_s)
            return
        turn_s = self._turn_s + _SETTLE_S
        controllers = self._options.controllers
        n_done = sum(len(turns) for turns in self._turns.values())
        stage = Stage(
            str(self._pipeline["name"]),
            controllers,
            controllers.index(row.controller),
            n_done * turn_s + elapsed_s + (_SETTLE_S if is_counted else 0),
            len(controllers) * self._options.turns * turn_s,
            is_counted,
        )
        rows = {controller: merged(turns) for controller, turns in self._turns.items()}
        if is_counted or row.controller not in rows:
            rows[row.controller] = merged([*self._turns.get(row.controller, []), row])
        self._live.update(live_view(stage, [*rows.values()], self._out.width), refresh=True)

    def _tell(self, row: Row, is_counted: bool, elapsed_s: float) -> None:
        """Prints one line a second, for files and pipes."""
        if self._options.as_json or not is_counted or elapsed_s < self._told_s:
            self._told_s = _PLAIN_S if not is_counted else self._told_s
            return
        self._told_s += _PLAIN_S
        self._out.print(plain_line(row, elapsed_s), soft_wrap=True)
