# SPDX-License-Identifier: BSD-3-Clause
"""actions.py - what the commands do, usable without the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from . import consoles
from .canonical import Document
from .check import check_all, raise_errors
from .client import Client, DaemonError
from .control import ControlOptions, as_started, with_costs
from .daemon import Daemon, StartOptions, find_program, list_daemons, start_daemon, stop_daemon
from .demo import DEMOS
from .graph_text import graph_dot
from .interrupts import Interrupted, interruptible
from .kinds import Kinds, load_kinds
from .live import WatchOptions, watch
from .load import load_pipeline, parse_overrides, pipeline_names
from .problems import BadInput, Problem, RunFailed, suggestion
from .rates import compute_rates
from .report import render_report, report_json
from .scenario import load_scenario
from .scenario_events import Action, resolve_scenario
from .scenario_play import DaemonPlayer, warnings_for_daemon
from .scheduling_advice import advice
from .settings import parse_arguments, parse_settings, running_names
from .show_nat import collect_nat
from .show_sessions import collect_sessions
from .show_tables import WHAT, render_show
from .startup_profile import ensure_profile, needs_costs
from .view import facts_line
from .yaml_writer import to_yaml


@dataclass(frozen=True)
class RunOptions:
    """How `run` and `start` go about it."""

    start: StartOptions = field(default_factory=StartOptions)
    watch: WatchOptions = field(default_factory=WatchOptions)
    sets: tuple[str, ...] = ()
    as_json: bool = False
    scenario: Path | None = None
    control: ControlOptions = field(default_factory=ControlOptions)
    simulate: str | None = None  # costs with which the same is simulated beside


def load_checked(name: str, overrides: Sequence[str], errors: Console) -> Document:
    """A pipeline without errors; warnings are printed. Raises BadInput with every error."""
    program = find_program()
    kinds = load_kinds(program)
    document = load_pipeline(name, parse_overrides(overrides), kinds)
    problems, _ = check_all(document, kinds, program)
    raise_errors(problems)
    for problem in problems:
        errors.print(Text.assemble(("warning: ", "yellow"), problem.line()), soft_wrap=True)
    return document


def start_pipeline(
    name: str, overrides: Sequence[str], options: RunOptions, errors: Console
) -> Daemon:
    """Starts a daemon with a checked pipeline and applies the settings of --set."""
    if options.control.is_program:
        fix = f"batchplane start {name}, then batchplane control {options.control.controller}"
        message = "a file of Python decides in a process of its own"
        raise BadInput(Problem(message, "command line", "--controller", fix))
    return start_document(load_checked(name, overrides, errors), options, errors)


def start_document(document: Document, options: RunOptions, errors: Console) -> Daemon:
    """The same for a pipeline that has been checked; measures its costs where that is needed."""
    wanted = options.control
    if wanted.has_profile and wanted.costs is None and needs_costs(wanted.controller):
        ensure_profile(document.pipeline, errors, options.start.cores)
    daemon = start_daemon(document.pipeline, _named(options.start, document))
    try:
        words = (*options.sets, *options.control.words())
        if words:
            change(daemon, words, document.pipeline, errors)
    except BaseException:
        stop_daemon(daemon)
        raise
    return daemon


def _named(options: StartOptions, document: Document) -> StartOptions:
    return options if options.name else replace(options, name=str(document.pipeline["name"]))


def run_pipeline(
    name: str, overrides: Sequence[str], options: RunOptions, out: Console, errors: Console
) -> int:
    """Runs a pipeline, shows it, stops it, reports. Returns the exit code."""
    with interruptible():
        try:
            document = load_checked(name, overrides, errors)
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
        from .sim_beside import pairs, render_pairs, simulate_beside

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
    """The actions of the scenario, and the options with its duration where none was given."""
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
    """A controller of Python decides meanwhile, where one was given."""
    if not control.is_program:
        yield
        return
    # Loaded here: only this needs numpy.
    from .control_daemon import ControlRequest, deciding

    request = ControlRequest(str(control.controller), words=control.program_words())
    with deciding(daemon, request, errors):
        yield


@contextmanager
def _playing(
    daemon: Daemon, actions: Sequence[Action], document: Document, errors: Console
) -> Iterator[None]:
    """The actions happen on the daemon meanwhile, each told with its time."""
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


def check_pipeline(
    name: str, overrides: Sequence[str]
) -> tuple[list[Problem], dict[str, Any], Document]:
    """Every problem of a pipeline, and the daemon's plan for it."""
    program: Path | None = None
    missing: list[Problem] = []
    try:
        program = find_program()
    except RunFailed as error:
        message = f"{error.message}: kinds and parameters were not checked"
        missing.append(Problem(message, fix=error.fix, is_warning=True))
    kinds = load_kinds(program) if program else Kinds()
    document = load_pipeline(name, parse_overrides(overrides), kinds)
    problems, plan = check_all(document, kinds, program)
    return problems + missing, plan, document


def change(
    daemon: Daemon,
    words: Sequence[str],
    pipeline: Mapping[str, Any] | None = None,
    errors: Console | None = None,
) -> list[dict[str, Any]]:
    """Applies settings to a running daemon in one step; what was changed."""
    advices = []
    with Client(daemon.socket) as client:
        sets = parse_settings(words, running_names(client))
        told = []
        for change in sets:
            if change["what"] == "controller":
                running = pipeline or as_started(daemon.socket, client.save())
                advices.append(advice(change["name"], running))
                change = with_costs(change, running)
            told.append(change)
        with _told_as_input():
            client.set(told)
    for line in filter(None, advices):
        (errors or consoles.errors()).print(
            Text.assemble(("warning: ", "yellow"), line), soft_wrap=True
        )
    return sets


def explain(daemon: Daemon, name: str | None) -> dict[str, Any]:
    """Why triggers are what they are: of a flow, a module, or all."""
    with Client(daemon.socket) as client, _told_as_input():
        answer: dict[str, Any] = client.request("explain", name=name or "")
    return answer


@contextmanager
def _told_as_input() -> Iterator[None]:
    """What the daemon refuses here was asked for wrongly: names, ranges."""
    try:
        yield
    except DaemonError as error:
        raise BadInput(error.problems) from error


def edit_module(
    daemon: Daemon, module: str, verb: str, words: Sequence[str], file: Path | None
) -> Any:
    """A module's own command, such as a table edit, or a bulk one from a file."""
    with Client(daemon.socket) as client:
        if file is None:
            return client.module(module, verb, parse_arguments(words))
        if not file.is_file():
            raise BadInput(Problem("there is no such file", str(file)))
        with _told_as_input():  # what is refused is a line of the file
            if file.suffix != ".json":
                return _bulk_answer(client.bulk_file_told(module, verb, file))
            items = _json_of(file)
            if not isinstance(items, list):
                raise BadInput(Problem("a table in JSON is a list", str(file)))
            return _bulk_answer(client.bulk_told(module, verb, items))


def _json_of(file: Path) -> Any:
    """What the file holds; BadInput with the line where it is no JSON."""
    try:
        return json.loads(file.read_text(), parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise BadInput(
            Problem(f"this is no JSON: {error.msg}", f"{file}:{error.lineno}")
        ) from error
    except ValueError as error:  # bytes that are no text, words that are no numbers
        raise BadInput(Problem(f"this is no JSON: {error}", str(file))) from error


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _bulk_answer(told: dict[str, Any]) -> dict[str, Any]:
    """How many, and what ended with it."""
    answer = told.get("answer")
    ended = answer.get("ended") if isinstance(answer, dict) else None
    return {"count": told["count"], **({"ended": ended} if ended else {})}


def apply_file(
    daemon: Daemon,
    name: str,
    overrides: Sequence[str],
    is_dry_run: bool,
    tell: Callable[[dict[str, Any]], None],
    errors: Console,
) -> dict[str, Any]:
    """Tells the difference first, then changes to the new pipeline in one step, or not at all."""
    document = load_checked(name, overrides, errors)
    with Client(daemon.socket) as client:
        answer = client.apply(document.pipeline, dry_run=True)
        tell(answer["difference"])
        return answer if is_dry_run else client.apply(document.pipeline)


def save_running(daemon: Daemon, file: Path | None) -> str:
    """The running pipeline as YAML (JSON for x.json); written when a file is given."""
    with Client(daemon.socket) as client:
        pipeline = client.save()
    text = (
        json.dumps(pipeline, indent=2) + "\n"
        if file and file.suffix == ".json"
        else to_yaml(pipeline)
    )
    if file is not None:
        try:
            file.write_text(text)
        except OSError as error:
            raise RunFailed(f"{file} cannot be written: {error.strerror}") from error
    return text


@dataclass(frozen=True)
class ShowOptions:
    """What to show, of what, and how."""

    what: str = "runtime"
    items: tuple[str, ...] = ()
    as_json: bool = False
    is_dot: bool = False
    watch_s: float | None = None


# Made of several answers; further words are filters.
_COLLECTED = {"nat": collect_nat, "sessions": collect_sessions}


def show_running(daemon: Daemon, options: ShowOptions, out: Console) -> None:
    """Prints one answer of `show`, or with watch_s one after another until Ctrl-C."""
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
        return parse_arguments(options.items)
    if not options.items:
        return {}
    key = {"tables": "module", "ports": "port"}.get(options.what)
    if key is None or len(options.items) > 1:
        raise BadInput(
            Problem(
                f"show {options.what} takes no {' '.join(options.items)}",
                "command line",
                "show",
                "show tables MODULE, show ports PORT, show nat and show sessions KEY=VALUE... do",
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


def attach(daemon: Daemon, options: WatchOptions, out: Console, errors: Console) -> None:
    """The live view on a running daemon; it goes on afterwards."""
    with Client(daemon.socket) as client, interruptible():
        errors.print(Text(facts_line(client.hello())), soft_wrap=True, style="dim")
        watch(client, out, options)


def trace(daemon: Daemon, count: int, expression: str, timeout_s: float) -> list[dict[str, Any]]:
    """Follows packets of a running daemon."""
    with Client(daemon.socket) as client:
        return client.trace(count, expression, int(timeout_s * 1e9))


def print_json(data: Any, is_one_line: bool = False) -> None:
    """JSON on standard output, as programs want it."""
    print(json.dumps(data, indent=None if is_one_line else 2), flush=True)


def completions(kind: str) -> Callable[[str], list[str]]:
    """Words for the shell: names of daemons, pipelines, module kinds or things to show."""

    def complete(incomplete: str) -> list[str]:
        try:
            return [word for word in _words(kind) if word.startswith(incomplete)]
        except Exception:  # a shell's completion never prints errors
            return []

    return complete


def _words(kind: str) -> list[str]:
    if kind == "show":
        return list(WHAT)
    if kind == "demos":
        return sorted(DEMOS)
    if kind == "daemons":
        return [daemon.name for daemon in list_daemons()]
    if kind == "modules":
        return sorted(load_kinds(find_program()).modules)
    return pipeline_names()
