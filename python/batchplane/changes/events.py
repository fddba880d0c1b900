# SPDX-License-Identifier: BSD-3-Clause
"""events.py - a scenario against a pipeline: patterns become names, events become actions.

Everything is resolved before the run, so that a wrong name fails before the first packet.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, suggestion
from .scenario import Event, Scenario
from .settings import parse_settings
from .traffic_state import GeneratorState, generator_states


@dataclass(frozen=True)
class CostChange:
    """The new cost of a module: a multiple of its initial cost, or in ns."""

    times: float | None = None
    cost_per_batch_ns: float | None = None
    cost_per_pkt_ns: float | None = None


@dataclass(frozen=True)
class TableEdit:
    """A command of a module."""

    module: str
    verb: str
    file: Path | None = None
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Action:
    """What happens at one point in time; `text` describes it for people."""

    at_ns: int
    where: str
    text: str
    sets: tuple[dict[str, Any], ...] = ()
    stall_ns: dict[str, int] = field(default_factory=dict)  # by worker
    costs: dict[str, CostChange] = field(default_factory=dict)  # by module
    table: TableEdit | None = None


def pipeline_names(pipeline: dict[str, Any]) -> dict[str, list[str]]:
    """The names that settings can refer to; settings.running_names asks a daemon for the same."""
    return {
        "module": list(pipeline.get("modules", {})),
        # Without `other`, which cannot have an SLO.
        "flow": [flow["name"] for flow in pipeline.get("flows", [])],
        "generator": [entry["name"] for entry in pipeline.get("generators", [])],
        "port": list(pipeline.get("ports", {})),
    }


def worker_names(pipeline: dict[str, Any]) -> list[str]:
    """The names of the workers, or of the default worker."""
    return [worker["name"] for worker in pipeline.get("workers", [])] or ["w0"]


def resolve_scenario(scenario: Scenario, pipeline: dict[str, Any]) -> list[Action]:
    """The actions in order of time. Raises BadInput with every unknown name."""
    names = pipeline_names(pipeline)
    states = generator_states(pipeline)
    workers = worker_names(pipeline)
    problems: list[Problem] = []
    actions = []
    for event in sorted(scenario.events, key=lambda event: event.model.at):
        try:
            actions.append(_resolve(event, names, states, workers, Path(scenario.file).parent))
        except BadInput as error:
            problems += [replace(problem, where=event.where) for problem in error.problems]
    if problems:
        raise BadInput(problems)
    return actions


def _resolve(
    event: Event,
    names: dict[str, list[str]],
    states: dict[str, GeneratorState],
    workers: list[str],
    folder: Path,
) -> Action:
    model = event.model
    action = Action(model.at, event.where, event_text(event))
    if model.set is not None:
        sets = parse_settings(model.set, names)
        for change in sets:
            if change["what"] == "generator":
                states[change["name"]].note(change)
        return replace(action, sets=tuple(sets))
    if model.stop is not None or model.start is not None:
        return replace(action, sets=tuple(_switch(model.stop, model.start, states)))
    if model.stall is not None:
        found = matching(model.stall, workers, "worker")
        return replace(action, stall_ns=dict.fromkeys(found, model.for_ or 0))
    if model.cost is not None:
        batch_ns, pkt_ns = model.per_batch, model.per_pkt
        change_of = CostChange(
            model.times,
            None if batch_ns is None else float(batch_ns),
            None if pkt_ns is None else float(pkt_ns),
        )
        return replace(
            action, costs=dict.fromkeys(matching(model.cost, names["module"], "module"), change_of)
        )
    return _table_action(event, action, names["module"], workers, folder)


def _table_action(
    event: Event, action: Action, modules: list[str], workers: list[str], folder: Path
) -> Action:
    model = event.model
    module, verb = model.table or "", model.verb or ""
    if module not in modules:
        raise BadInput(Problem(f"there is no module '{module}'", fix=suggestion(module, modules)))
    file = None if model.file is None else folder / model.file
    if file is not None and not file.is_file():
        raise BadInput(
            Problem(f"there is no file '{file}'", fix="the path is relative to the scenario")
        )
    stall_ns = dict.fromkeys(workers, model.holds_up) if model.holds_up else {}
    edit = TableEdit(module, verb, file, model.args or {})
    return replace(action, table=edit, stall_ns=stall_ns)


def _switch(
    stop: list[str] | None, start: list[str] | None, states: dict[str, GeneratorState]
) -> list[dict[str, Any]]:
    is_on = start is not None
    sets: list[dict[str, Any]] = []
    for word in (start if start is not None else stop) or []:
        name, slash, flow = word.partition("/")
        for generator in matching([name], states, "generator"):
            state = states[generator]
            if slash:
                found = matching([flow], [entry.name for entry in state.flows], "traffic flow")
                sets += state.switch(found, is_on)
            elif state.is_on != is_on:
                state.is_on = is_on
                sets.append({"what": "generator", "name": generator, "is_on": is_on})
    return sets


def matching(patterns: Iterable[str], known: Iterable[str], what: str) -> list[str]:
    """The known names that match any pattern. Raises BadInput for a pattern without a match."""
    names = list(known)
    found: dict[str, None] = {}
    for pattern in patterns:
        fitting = fnmatch.filter(names, pattern)
        if not fitting:
            raise BadInput(
                Problem(
                    f"there is no {what} '{pattern}'",
                    fix=suggestion(pattern, names, "" if names else "the pipeline has none"),
                )
            )
        found.update(dict.fromkeys(fitting))
    return list(found)


def event_text(event: Event) -> str:
    """Describes the event in a few words."""
    value = getattr(event.model, event.action)
    words = value if isinstance(value, str) else ", ".join(value)
    more = f" {event.model.verb}" if event.action == "table" else ""
    if event.model.times is not None:
        more = f" x {event.model.times:g}"
    return f"{event.action} {words}{more}"
