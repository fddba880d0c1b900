# SPDX-License-Identifier: BSD-3-Clause
"""change.py - the arguments and output of `set`, `apply`, `move` and `save`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..base.consoles import errors, out, print_json
from ..base.problems import BadInput, Problem
from ..changes.settings import FORMS
from ..commands import change as changes
from ..daemon.process import find_daemon
from ..show.sessions import render_ended
from ..show.tables import render_show
from .words import Json, Name, Overrides, PipelineArg

app = typer.Typer()


@app.command(
    "set",
    epilog=f"Settings (all are applied in one step):\n\n{FORMS.replace(chr(10), chr(10) * 2)}",
)
def set_command(
    words: Annotated[list[str], typer.Argument(metavar="SETTING... | MODULE VERB [KEY=VALUE]...")],
    name: Name = None,
    as_json: Json = False,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="read a whole table for VERB from this file")
    ] = None,
) -> None:
    """Change triggers, age limits, SLOs, rates and tables while traffic flows."""
    daemon = find_daemon(name)
    if len(words) == 3 and words[0] == "slo" and "=" not in "".join(words):
        words = [f"{words[1]}.slo={words[2]}"]
    if "=" in words[0]:
        _changed(changes.change(daemon, words), as_json, out())
        return
    if len(words) < 2 or "=" in words[1]:
        raise BadInput(
            Problem(
                f"'{words[0]}' is not a setting",
                "command line",
                "set",
                f"{words[0]}.trigger=8, or {words[0]} add KEY=VALUE",
            )
        )
    _answered(changes.edit_module(daemon, words[0], words[1], words[2:], file), as_json, out())


@app.command()
def apply(
    pipeline: PipelineArg,
    params: Overrides = None,
    name: Name = None,
    is_dry_run: Annotated[
        bool, typer.Option("--dry-run", help="only show what would change")
    ] = False,
    as_json: Json = False,
) -> None:
    """Switch a running daemon to another pipeline, in one step or not at all."""
    console = out()
    answer = changes.apply_file(
        find_daemon(name),
        pipeline,
        params or [],
        is_dry_run,
        lambda change: None if as_json else difference(change, console),
        errors(),
    )
    _applied(answer, is_dry_run, as_json, console)


@app.command()
def move(
    words: Annotated[list[str], typer.Argument(metavar="PART WORKER [PART WORKER]...")],
    name: Name = None,
    as_json: Json = False,
) -> None:
    """Move a module, and what only it feeds, to another worker while traffic flows."""
    answer = changes.move(find_daemon(name), words)
    if as_json:
        print_json(answer)
        return
    console = out()
    _moved(answer, console)
    if not answer["moved"]:
        console.print("it runs there already")
        return
    workers = " and ".join(answer["workers"])
    stop_us = answer["stop_ns"] / 1000
    console.print(Text(f"{workers} stood still for {stop_us:.0f} us at most", "dim"))


@app.command()
def save(
    file: Annotated[
        Path | None, typer.Argument(help="where to save: x.yaml or x.json (default: print YAML)")
    ] = None,
    name: Name = None,
) -> None:
    """Save the running pipeline, with its live changes, to a file you can start again."""
    text = changes.save_running(find_daemon(name), file, errors())
    if file is None:
        sys.stdout.write(text)
    else:
        out().print(f"saved to {file}")


def difference(change: dict[str, Any], out: Console) -> None:
    """Prints what apply would change."""
    styles = (("added", "+", "green"), ("removed", "-", "red"), ("changed", "~", "yellow"))
    for key, sign, style in styles:
        for entry in change.get(key, []):
            out.print(
                Text(
                    f"{sign} {entry if isinstance(entry, str) else entry.get('name', entry)}", style
                )
            )
    _moved(change, out)
    if controller := change.get("controller"):
        out.print(Text(f"~ controller: {controller['from']} -> {controller['to']}", "yellow"))
    out.print(Text(f"{len(change.get('kept', []))} kept with their state", "dim"))


def _moved(change: dict[str, Any], out: Console) -> None:
    """Prints which modules move between workers."""
    for (start, end), names in _moves(change).items():
        told = f"{', '.join(names[:4])}{', ...' if names[4:] else ''}"
        line = f"> {len(names)} moved from {start} to {end} with their state: {told}"
        out.print(Text(line, "cyan"), soft_wrap=True)


def _changed(sets: Sequence[dict[str, Any]], as_json: bool, out: Console) -> None:
    """Prints the settings that were applied."""
    if as_json:
        print_json(list(sets))
        return
    for entry in sets[:20]:
        target = next((entry[key] for key in ("module", "flow", "name") if key in entry), "")
        rest = ", ".join(
            f"{key} {value}"
            for key, value in entry.items()
            if key not in ("what", "module", "flow", "name")
        )
        rest = rest or "done"
        out.print(
            Text.assemble(("set ", "green"), f"{entry['what']} {target}: {rest}".replace(" :", ":"))
        )
    if len(sets) > 20:
        out.print(f"and {len(sets) - 20} more, all in one step")


def _answered(answer: Any, as_json: bool, out: Console) -> None:
    """Prints a module's answer to its own command."""
    if as_json:
        print_json(answer)
    elif answer in (None, {}, [], True):
        out.print(Text("done", "green"))
    elif isinstance(answer, dict) and answer.get("ended"):
        out.print(render_ended(answer["ended"]))
    else:
        out.print(render_show("tables", answer))


def _moves(change: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    """The names of the modules that move, by old and new worker."""
    moves: dict[tuple[str, str], list[str]] = {}
    for move in change.get("moved", []):
        moves.setdefault((move["from"], move["to"]), []).append(move["module"])
    return moves


def _applied(answer: dict[str, Any], is_dry_run: bool, as_json: bool, out: Console) -> None:
    """Prints the result of apply."""
    if as_json:
        print_json(answer)
    elif is_dry_run:
        out.print("nothing was changed (--dry-run)")
    else:
        out.print(Text("applied", "green") if answer.get("applied") else "nothing to change")
