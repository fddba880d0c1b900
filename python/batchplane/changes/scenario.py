# SPDX-License-Identifier: BSD-3-Clause
"""scenario.py - scenario files: a time line of events; docs/scenarios.md describes them.

The same file drives the simulator and a daemon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..base.limits import EVENT_NS
from ..base.problems import BadInput, Problem, suggestion
from ..base.units import parse_duration_ns
from ..lang.canonical import in_words
from ..lang.expand import Expanded, expand
from ..lang.yaml_loader import load_yaml

ACTIONS = ("set", "stop", "start", "stall", "cost", "table")
_DURATIONS = ("at", "for", "per_batch", "per_pkt", "holds_up")
# The options of each action.
_OPTIONS = {
    "stall": ("for",),
    "cost": ("times", "per_batch", "per_pkt"),
    "table": ("verb", "file", "args", "holds_up"),
}

Words = list[str]


class EventModel(BaseModel):
    """One event: a time, one action and its options."""

    model_config = ConfigDict(extra="forbid", strict=True)

    at: int = Field(ge=0, le=EVENT_NS.most, description="time from the start")
    set: Words | None = Field(
        default=None, min_length=1, description="settings as for `batchplane set`"
    )
    stop: Words | None = Field(
        default=None, min_length=1, description="GENERATOR or GENERATOR/TRAFFIC_FLOW"
    )
    start: Words | None = Field(default=None, min_length=1, description="the same, on again")
    stall: Words | None = Field(default=None, min_length=1, description="workers to stall")
    for_: int | None = Field(
        default=None, alias="for", gt=0, le=EVENT_NS.most, description="for how long"
    )
    cost: Words | None = Field(default=None, min_length=1, description="modules whose cost changes")
    times: float | None = Field(
        default=None, ge=0, le=1e6, allow_inf_nan=False, description="factor on the initial cost"
    )
    per_batch: int | None = Field(
        default=None, ge=0, le=10**9, description="or a new time per batch"
    )
    per_pkt: int | None = Field(default=None, ge=0, le=10**8, description="and per packet")
    table: str | None = Field(default=None, description="module whose table to edit")
    verb: str | None = Field(default=None, description="what to do: add, replace, ...")
    file: str | None = Field(default=None, description="a whole table, relative to the scenario")
    args: dict[str, Any] | None = Field(default=None, description="or the verb's arguments")
    holds_up: int | None = Field(
        default=None,
        ge=0,
        le=EVENT_NS.most,
        description="simulator only: time that it holds up the workers",
    )


class ScenarioModel(BaseModel):
    """A whole scenario file, after expansion."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    duration: int | None = Field(default=None, gt=0, le=EVENT_NS.most)
    events: list[EventModel] = Field(default_factory=list)


@dataclass(frozen=True)
class Event:
    """An event and its line in the file."""

    model: EventModel
    where: str

    @property
    def action(self) -> str:
        """The name of the event's only action."""
        return next(key for key in ACTIONS if getattr(self.model, key) is not None)


@dataclass(frozen=True)
class Scenario:
    """A scenario file that is valid in itself; its names are checked against a pipeline later."""

    name: str
    file: str
    duration_ns: int | None = None
    events: list[Event] = field(default_factory=list)


def load_scenario(path: Path) -> Scenario:
    """Reads a scenario. Raises BadInput with the file:line of every mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInput(Problem("there is no such file", str(path))) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(Problem(f"cannot be read: {error}", str(path))) from error
    return parse_scenario(text, str(path))


def parse_scenario(text: str, file: str) -> Scenario:
    """Parses `text`. Raises BadInput with the file:line of every mistake."""
    expanded = expand(load_yaml(text, file, "a scenario", "events"), file)
    problems = list(expanded.problems)
    data = dict(expanded.data)
    if not isinstance(data.get("events"), list):
        problems.append(
            Problem("there is no list of events", file, "events", "events: [{at: 1s, set: ...}]")
        )
        raise BadInput(problems)
    unknown = [key for key in data if key not in ScenarioModel.model_fields]
    for key in unknown:
        fix = suggestion(key, ScenarioModel.model_fields)
        problems.append(Problem(f"unknown key '{key}'", expanded.where((key,)), key, fix))
    events = [_event(expanded, i, entry, problems) for i, entry in enumerate(data["events"])]
    duration_ns = data.get("duration")
    if duration_ns is not None:
        parsed_ns = parse_duration_ns(duration_ns)
        if not parsed_ns:
            message = f"'{duration_ns}' is not a duration"
            problems.append(
                Problem(message, expanded.where(("duration",)), "duration", "for example 2s")
            )
        duration_ns = parsed_ns
    if problems:
        raise BadInput(problems)
    return Scenario(
        str(data.get("name") or Path(file).stem),
        file,
        duration_ns,
        [event for event in events if event is not None],
    )


def _event(expanded: Expanded, i: int, entry: Any, problems: list[Problem]) -> Event | None:
    where = expanded.where(("events", i))

    def wrong(message: str, key: str = "", fix: str = "") -> None:
        line = expanded.where(("events", i, key)) if key else where
        name = f"events[{i}]" + (f".{key}" if key else "")
        problems.append(Problem(message, line, name, fix))

    if not isinstance(entry, dict):
        wrong(f"expected a mapping, found '{entry}'", fix="{at: 200ms, set: load.rate=4M}")
        return None
    before = len(problems)
    plain = _plain(entry, wrong)
    actions = [key for key in ACTIONS if key in plain]
    if len(actions) != 1:
        told = "no action" if not actions else f"{' and '.join(actions)}: one action each"
        wrong(f"the event has {told}", fix=f"one of: {', '.join(ACTIONS)}")
        return None
    allowed = ("at", actions[0], *_OPTIONS.get(actions[0], ()))
    for key in plain:
        if key not in allowed:
            wrong(f"'{key}' does not go with {actions[0]}", key, suggestion(key, allowed))
    if len(problems) > before:
        return None
    try:
        model = EventModel.model_validate(plain)
    except ValidationError as error:
        for mistake in error.errors(include_url=False):
            key = str(mistake["loc"][0]) if mistake["loc"] else ""
            wrong("it is missing" if mistake["type"] == "missing" else in_words(mistake), key)
        return None
    message, fix = _incomplete(model)
    if message:
        wrong(message, fix=fix)
        return None
    return Event(model, where)


def _plain(entry: dict[str, Any], wrong: Any) -> dict[str, Any]:
    """The entry as the model expects it: durations in ns, single words as lists."""
    plain: dict[str, Any] = {}
    for key, value in entry.items():
        if value is None:
            wrong("nothing is given", key)
        elif key in _DURATIONS:
            duration_ns = 0 if value == 0 and type(value) is int else parse_duration_ns(value)
            if duration_ns is None:
                wrong(f"'{value}' is not a duration", key, "with a unit: 50us, 200ms, 1s")
            else:
                plain[key] = duration_ns
        elif key in ACTIONS and key != "table" and isinstance(value, str):
            plain[key] = [value]
        elif key == "times" and type(value) is int:
            plain[key] = float(value)
        else:
            plain[key] = value
    return plain


def _incomplete(event: EventModel) -> tuple[str, str]:
    if event.stall is not None and event.for_ is None:
        return "it is not said for how long", "{at: 1s, stall: w0, for: 500us}"
    if event.cost is not None:
        is_set = event.per_batch is not None or event.per_pkt is not None
        if is_set == (event.times is not None):
            fix = "times: 2, or per_batch: 4us and per_pkt: 20ns"
            return "give the new cost as times, or as per_batch and per_pkt", fix
    if event.table is not None and event.verb is None:
        return "it is not said what to do with the table", "verb: replace, file: routes.txt"
    if event.table is not None and (event.file is None) == (event.args is None):
        return "the table's news come in a file or in args", "file: routes.txt, or args: {...}"
    return "", ""
