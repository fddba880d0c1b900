# SPDX-License-Identifier: BSD-3-Clause
"""options.py - a controller for a running daemon: its name, period, settings, and what it is told
of costs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem
from ..base.units import parse_duration_ns
from ..costs.cache import cached_costs
from ..costs.costs import ANY_IN_QUEUE, BUILT_IN, PRIOR, load_costs, resolve
from ..costs.law import CostLaw
from ..daemon.run_folder import read_own
from .file import is_controller_file

MIN_PERIOD_NS, MAX_PERIOD_NS = 1_000_000, 1_000_000_000
NO_CONTROLLER = "none"
REMOTE = "remote"  # a program that has connected decides
SAMPLED = "sampled runs"
_IN_WORDS = ("decompose",)  # settings that are no numbers


@dataclass(frozen=True)
class ControlOptions:
    """What `run` and `start` were asked to control, as written."""

    controller: str | None = None
    period: str | None = None
    slos: tuple[str, ...] = ()  # FLOW=80us
    costs: str | None = None
    has_profile: bool = True  # measured at the start where none is kept

    @property
    def is_program(self) -> bool:
        """The controller is a file of Python: a process of its own decides."""
        return self.controller is not None and is_controller_file(self.controller)

    def program_words(self) -> tuple[str, ...]:
        """What the process of the controller is told beside its file."""
        given = {"period": self.period, "costs": self.costs}
        return tuple(f"controller.{key}={value}" for key, value in given.items() if value)

    def slo_words(self) -> list[str]:
        """The promises as settings."""
        words = []
        for slo in self.slos:
            flow, _, promise = slo.partition("=")
            if not flow or not promise:
                raise _bad("--slo", f"'{slo}' is not a promise", "FLOW=80us")
            words.append(f"{flow}.slo={promise}")
        return words

    def words(self) -> list[str]:
        """All as settings, but for a program that decides."""
        words = self.slo_words()
        for option, value in (("--period", self.period), ("--costs", self.costs)):
            if value is not None and self.controller is None:
                raise _bad(option, "it needs a controller", "--controller optimal")
        if self.is_program:
            return words
        if self.controller is not None:
            words.append(f"controller={self.controller}")
        if self.period is not None:
            words.append(f"controller.period={self.period}")
        if self.costs is not None:
            words.append(f"controller.costs={self.costs}")
        return words


def is_control_word(left: str) -> bool:
    """Whether the left side of a setting is about the controller, and of no module so named."""
    head, dot, setting = left.partition(".")
    return head == "controller" and (not dot or setting not in ("trigger", "age_limit"))


def controller_set(words: Sequence[str]) -> dict[str, Any]:
    """The protocol's `set` object of controller=.. and controller.SETTING=..; costs by name yet."""
    change: dict[str, Any] = {"what": "controller"}
    settings: dict[str, float | str] = {}
    for word in words:
        left, _, value = word.partition("=")
        setting = left.partition(".")[2]
        if not setting:
            if is_controller_file(value):
                raise _bad(
                    word,
                    "a Python controller runs in its own process",
                    f"batchplane control {value}",
                )
            change["name"] = value
        elif setting == "period":
            change["period_ns"] = _period_ns(word, value)
        elif setting == "costs":
            change["costs"] = value
        elif setting in _IN_WORDS:
            settings[setting] = value
        else:
            try:
                settings[setting] = float(value)
            except ValueError as error:
                raise _bad(word, f"'{value}' is not a number") from error
    if "name" not in change:
        raise _bad(words[0], "no controller is given", "controller=optimal " + " ".join(words))
    if settings:
        change["settings"] = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in settings.items()
        }
    return change


def _period_ns(word: str, value: str) -> int:
    period_ns = parse_duration_ns(value)
    if period_ns is None or not MIN_PERIOD_NS <= period_ns <= MAX_PERIOD_NS:
        raise _bad(word, f"'{value}' is not a control period", "1ms to 1s")
    return period_ns


def with_costs(change: dict[str, Any], pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the costs of each module: of the file named, else the profile that is kept,
    else built-in ones. Sampled runs correct all of them."""
    if change["name"] == NO_CONTROLLER:
        return {key: value for key, value in change.items() if key != "costs"}
    name = change.get("costs")
    if name is not None:
        file = load_costs(name)
        found = resolve(pipeline, file)
        origin = f"{name}, {found.label}"
        # Saved with the controller, to be found from any folder.
        change = {**change, "costs_file": name if name in BUILT_IN else str(Path(name).resolve())}
    else:
        kept = cached_costs(pipeline)
        origin = "the profile kept for this pipeline" if kept else "built-in"
        try:
            found = resolve(pipeline, kept or load_costs(PRIOR))
        except BadInput:  # a kind that nobody has measured
            return {**change, "costs": {}, "costs_origin": SAMPLED}
    batch_pkts = pipeline.get("engine", {}).get("batch_pkts", 32)
    costs: dict[str, Any] = {}
    first: dict[CostLaw, str] = {}
    for module, law in found.modules.items():
        # Modules that share a law name the first: requests have a limit.
        alike = first.setdefault(law, module)
        costs[module] = law.up_to(batch_pkts).as_json() if alike == module else alike
    if found.in_queue is not None:
        costs[ANY_IN_QUEUE] = found.in_queue.up_to(batch_pkts).as_json()
    return {**change, "costs": costs, "costs_origin": origin}


def controlled(
    pipeline: Mapping[str, Any], wanted: ControlOptions
) -> tuple[dict[str, Any], ControlOptions]:
    """The pipeline as its daemon gets it, and what of `wanted` remains to be set.

    A controller of the pipeline's own gets its costs; another one that is wanted takes its place.
    """
    given = pipeline.get("controller")
    rest = {key: value for key, value in pipeline.items() if key != "controller"}
    if given is None or wanted.controller is not None:
        return rest, wanted
    period = {} if wanted.period is None else {"period_ns": _period_ns("--period", wanted.period)}
    own = {**given, **period}
    if wanted.costs is not None:
        own = {**own, "costs_file": wanted.costs}
        own.pop("costs", None)
    rest["controller"] = with_own_costs(own, pipeline)
    return rest, replace(wanted, period=None, costs=None)


def with_own_costs(controller: Mapping[str, Any], pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """A pipeline's `controller` with the costs of each module, where they are not in there."""
    if "costs" in controller:
        return dict(controller)
    asked = {"name": controller["name"]}
    if "costs_file" in controller:
        asked["costs"] = controller["costs_file"]
    return {**controller, **with_costs(asked, pipeline)}


def as_started(socket: Path, saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pipeline as the daemon was started with it, if that is what runs: profiles are kept of
    that one. What a daemon saves has every default and every entry that its tables have now."""
    try:
        given = json.loads(read_own(socket.with_suffix(".pipeline")))
        is_same = _kinds(given) == _kinds(saved)
    except (OSError, ValueError, KeyError, TypeError):
        return saved
    return given if is_same else saved


def _kinds(pipeline: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(module["kind"]) for name, module in pipeline["modules"].items()}


def _bad(word: str, message: str, fix: str = "") -> BadInput:
    return BadInput(Problem(message, "command line", word, fix))
