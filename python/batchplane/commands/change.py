# SPDX-License-Identifier: BSD-3-Clause
"""change.py - how `batchplane set`, `apply`, `move` and `save` change a running daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ..base import consoles
from ..base.json_file import read_json
from ..base.problems import BadInput, Problem, RunFailed
from ..changes.arguments import parse_arguments
from ..changes.settings import parse_settings, running_names
from ..control.advice import advice
from ..control.options import REMOTE, as_started, with_costs, with_own_costs
from ..control.placement import passed_over, with_laws
from ..daemon.client import Client, told_as_input
from ..daemon.process import Daemon


def change(
    daemon: Daemon,
    words: Sequence[str],
    pipeline: Mapping[str, Any] | None = None,
    errors: Console | None = None,
) -> list[dict[str, Any]]:
    """Applies settings to a running daemon in one step; returns what was changed."""
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
        with told_as_input():
            client.set(told)
    for line in filter(None, advices):
        (errors or consoles.errors()).print(
            Text.assemble(("warning: ", "yellow"), line), soft_wrap=True
        )
    return sets


def edit_module(
    daemon: Daemon, module: str, verb: str, words: Sequence[str], file: Path | None
) -> Any:
    """Sends a module's own command: one table edit, or many from a file."""
    with Client(daemon.socket) as client:
        if file is None:
            with told_as_input():
                return client.module(module, verb, parse_arguments(words))
        if not file.is_file():
            raise BadInput(Problem("there is no such file", str(file)))
        with told_as_input():  # a rejected entry is reported as a line of the file
            if file.suffix != ".json":
                return _bulk_answer(client.bulk_file_told(module, verb, file))
            items = read_json(file)
            if not isinstance(items, list):
                raise BadInput(Problem("a table in JSON must be a list", str(file)))
            return _bulk_answer(client.bulk_told(module, verb, items))


def _bulk_answer(told: dict[str, Any]) -> dict[str, Any]:
    """The number of entries, and the sessions that ended with them."""
    answer = told.get("answer")
    ended = answer.get("ended") if isinstance(answer, dict) else None
    return {"count": told["count"], **({"ended": ended} if ended else {})}


def move(daemon: Daemon, words: Sequence[str]) -> dict[str, Any]:
    """Moves parts of a running pipeline to other workers; returns what moved and what paused."""
    if len(words) % 2:
        fix = "PART WORKER [PART WORKER]..."
        raise BadInput(Problem(f"'{words[-1]}' has no worker", "command line", "move", fix))
    parts = dict(zip(words[::2], words[1::2], strict=True))
    with Client(daemon.socket) as client, told_as_input():
        return client.move(parts)


def apply_file(
    daemon: Daemon,
    name: str,
    overrides: Sequence[str],
    is_dry_run: bool,
    tell: Callable[[dict[str, Any]], None],
    errors: Console,
) -> dict[str, Any]:
    """Reports the difference, then switches to the new pipeline in one step or not at all."""
    from ..admission.weights import load_fitted  # needs the language package; other changes do not

    pipeline = load_fitted(name, overrides, errors).pipeline
    if "controller" in pipeline:
        own = with_own_costs(pipeline["controller"], pipeline)
        pipeline = {**pipeline, "controller": own}
    if problem := passed_over(pipeline):
        errors.print(Text.assemble(("warning: ", "yellow"), problem.line()), soft_wrap=True)
    pipeline = with_laws(pipeline)
    with Client(daemon.socket) as client:
        answer = client.apply(pipeline, dry_run=True)
        tell(answer["difference"])
        return answer if is_dry_run else client.apply(pipeline)


def save_running(daemon: Daemon, file: Path | None, errors: Console) -> str:
    """The running pipeline as YAML (JSON for x.json); written to the file if one is given."""
    from ..lang.yaml_writer import to_yaml  # needs the language package; other changes do not

    with Client(daemon.socket) as client:
        pipeline = client.save()
        control = client.show("control")
    if control["controller"] == REMOTE:
        line = f"{control['label']} runs in its own process and is not part of the saved file"
        errors.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)
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
