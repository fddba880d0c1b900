# SPDX-License-Identifier: BSD-3-Clause
"""start.py - what `batchplane start` does: starts a daemon with a pipeline, settings, costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..admission.weights import load_fitted
from ..base.problems import BadInput, Problem
from ..control.advice import advice
from ..control.options import ControlOptions, controlled
from ..control.placement import passed_over, with_laws
from ..daemon.process import Daemon, StartOptions, start_daemon, stop_daemon
from ..lang.canonical import Document
from ..profile.at_start import ensure_profile, needs_costs
from ..show.live import WatchOptions
from .change import change


@dataclass(frozen=True)
class RunOptions:
    """The options of `run` and `start`."""

    start: StartOptions = field(default_factory=StartOptions)
    watch: WatchOptions = field(default_factory=WatchOptions)
    sets: tuple[str, ...] = ()
    as_json: bool = False
    scenario: Path | None = None
    control: ControlOptions = field(default_factory=ControlOptions)
    simulate: str | None = None  # costs for a simulation of the same run


def start_pipeline(
    name: str, overrides: Sequence[str], options: RunOptions, errors: Console
) -> Daemon:
    """Starts a daemon with a checked pipeline and applies the settings of --set."""
    if options.control.is_program:
        fix = f"batchplane start {name}, then batchplane control {options.control.controller}"
        message = "a Python controller runs in its own process"
        raise BadInput(Problem(message, "command line", "--controller", fix))
    return start_document(load_fitted(name, overrides, errors), options, errors)


def start_document(document: Document, options: RunOptions, errors: Console) -> Daemon:
    """Starts a daemon with a pipeline that has been checked; measures its costs if necessary."""
    wanted = options.control
    own = document.pipeline.get("controller", {})
    controller = wanted.controller or own.get("name")
    costs = wanted.costs or (own.get("costs_file") if wanted.controller is None else None)
    if wanted.has_profile and costs is None and needs_costs(controller):
        ensure_profile(document.pipeline, errors, options.start.cores)
    pipeline, wanted = controlled(document.pipeline, wanted)
    if line := advice(pipeline.get("controller", {}).get("name", ""), pipeline):
        errors.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)
    if problem := passed_over(pipeline):
        errors.print(Text.assemble(("warning: ", "yellow"), problem.line()), soft_wrap=True)
    daemon = start_daemon(with_laws(pipeline), _named(options.start, document))
    try:
        words = (*options.sets, *wanted.words())
        if words:
            change(daemon, words, document.pipeline, errors)
    except BaseException:
        stop_daemon(daemon)
        raise
    return daemon


def _named(options: StartOptions, document: Document) -> StartOptions:
    return options if options.name else replace(options, name=str(document.pipeline["name"]))
