# SPDX-License-Identifier: BSD-3-Clause
"""run.py - what `batchplane run` does: starts a pipeline, shows it, stops it, reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from ..admission.weights import load_fitted
from ..base.consoles import print_json
from ..base.interrupts import Interrupted, interruptible
from ..changes.events import Action, resolve_scenario
from ..changes.play import DaemonPlayer, warnings_for_daemon
from ..changes.scenario import load_scenario
from ..control.options import ControlOptions
from ..daemon.client import Client
from ..daemon.process import (
    Daemon,
    stop_daemon,
)
from ..lang.canonical import Document
from ..show.live import watch
from ..show.rates import compute_rates
from ..show.report import render_report, report_json
from ..show.view import facts_line
from .start import RunOptions, start_document


def run_pipeline(
    name: str, overrides: Sequence[str], options: RunOptions, out: Console, errors: Console
) -> int:
    """Starts a pipeline, shows it, stops it and reports. Returns the exit code."""
    with interruptible():
        try:
            document = load_fitted(name, overrides, errors)
            options, actions = _with_scenario(document, options, errors)
            daemon = start_document(document, options, errors)
        except Interrupted:
            return 130
        try:
            with Client(daemon.socket) as client:
                hello = client.hello()
                errors.print(Text(facts_line(hello)), soft_wrap=True, style="dim")
                view = out if not options.as_json else errors
                with (
                    _decided(daemon, options.control, errors),
                    _playing(daemon, actions, document, errors),
                ):
                    first, last = watch(client, view, options.watch)
        except Interrupted:
            stop_daemon(daemon)
            return 130
        except BaseException:
            stop_daemon(daemon)
            raise
    report = stop_daemon(daemon)
    if options.as_json:
        data = report_json(first, last, hello, report)
    else:
        out.print(render_report(first, last, hello, report))
    if options.simulate is not None:
        # Loaded here: only this needs numpy and the extension.
        from .beside import pairs, render_pairs, simulate_beside

        twin = simulate_beside(document, options, compute_rates(first, last).interval_s, errors)
        found = pairs(first, last, twin.result)
        if options.as_json:
            data["simulated"] = twin.result.as_json()
            data["beside"] = [pair.as_json() for pair in found]
        else:
            out.print(render_pairs(found, twin.origin))
    if options.as_json:
        print_json(data)
    balance = report.get("balance") or last["runtime"]["balance"]
    return 0 if balance.get("is_exact", True) else 1


def _with_scenario(
    document: Document, options: RunOptions, errors: Console
) -> tuple[RunOptions, list[Action]]:
    """The scenario's actions, and the options with its duration if none was given."""
    if options.scenario is None:
        return options, []
    scenario = load_scenario(options.scenario)
    actions = resolve_scenario(scenario, document.pipeline)
    for line in warnings_for_daemon(actions, _kinds_of(document)):
        errors.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)
    if options.watch.duration_s is None and scenario.duration_ns is not None:
        watch_options = replace(options.watch, duration_s=scenario.duration_ns / 1e9)
        return replace(options, watch=watch_options), actions
    return options, actions


def _kinds_of(document: Document) -> dict[str, str]:
    modules = document.pipeline.get("modules", {})
    return {name: str(module["kind"]) for name, module in modules.items()}


@contextmanager
def _decided(daemon: Daemon, control: ControlOptions, errors: Console) -> Iterator[None]:
    """Runs the Python controller, if one was given, while the block runs."""
    if not control.is_program:
        yield
        return
    # Loaded here: only this needs numpy.
    from ..control.decide import ControlRequest, deciding

    request = ControlRequest(str(control.controller), words=control.program_words())
    with deciding(daemon, request, errors):
        yield


@contextmanager
def _playing(
    daemon: Daemon, actions: Sequence[Action], document: Document, errors: Console
) -> Iterator[None]:
    """Applies the actions to the daemon while the block runs, and reports each with its time."""
    if not actions:
        yield
        return
    with DaemonPlayer(
        daemon,
        actions,
        _kinds_of(document),
        lambda line: errors.print(Text(line, "dim"), soft_wrap=True),
    ):
        yield
