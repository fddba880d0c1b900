# SPDX-License-Identifier: BSD-3-Clause
"""options.py - a controller for a running daemon: its name, period, settings, and the costs that it
is given."""

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
REMOTE = "remote"  # a connected program decides
SAMPLED = "sampled runs"
_IN_WORDS = ("decompose",)  # settings that are not numbers


@dataclass(frozen=True)
class ControlOptions:
    """The control options of `run` and `start`, as written."""

    controller: str | None = None
    period: str | None = None
    slos: tuple[str, ...] = ()  # FLOW=80us
    costs: str | None = None
    has_profile: bool = True  # measure a profile at the start if none is kept

    @property
    def is_program(self) -> bool:
        """Whether the controller is a Python file, which decides in its own process."""
        return self.controller is not None and is_controller_file(self.controller)

    def program_words(self) -> tuple[str, ...]:
        """The settings that the controller's process gets besides its file."""
        given = {"period": self.period, "costs": self.costs}
        return tuple(f"controller.{key}={value}" for key, value in given.items() if value)

    def slo_words(self) -> list[str]:
        """The SLOs as settings."""
        words = []
        for slo in self.slos:
            flow, _, promise = slo.partition("=")
            if not flow or not promise:
                raise _bad("--slo", f"'{slo}' is not a promise", "FLOW=80us")
            words.append(f"{flow}.slo={promise}")
        return words

    def words(self) -> list[str]:
        """All options as settings; only the SLOs if a program decides."""
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
    """Whether the left side of a setting means the controller, not a module of that name."""
    head, dot, setting = left.partition(".")
    return head == "controller" and (not dot or setting not in ("trigger", "age_limit"))


def controller_set(words: Sequence[str]) -> dict[str, Any]:
    """The protocol's `set` object of controller=.. and controller.SETTING=..; costs only by
    name."""
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
    """Adds the costs of each module: from the named file, else the kept profile, else the built-in
    costs. Sampled runs correct all of them."""
    if change["name"] == NO_CONTROLLER:
        return {key: value for key, value in change.items() if key != "costs"}
    name = change.get("costs")
    if name is not None:
        file = load_costs(name)
        found = resolve(pipeline, file)
        origin = f"{name}, {found.label}"
        # Saved with the controller, so the path must work from any folder.
        change = {**change, "costs_file": name if name in BUILT_IN else str(Path(name).resolve())}
    else:
        kept = cached_costs(pipeline)
        origin = "the profile kept for this pipeline" if kept else "built-in"
        try:
            found = resolve(pipeline, kept or load_costs(PRIOR))
        except BadInput:  # there are no costs for a kind
            return {**change, "costs": {}, "costs_origin": SAMPLED}
    batch_pkts = pipeline.get("engine", {}).get("batch_pkts", 32)
    costs: dict[str, Any] = {}
    first: dict[CostLaw, str] = {}
    for module, law in found.modules.items():
        # Modules with the same law refer to the first: requests have a size limit.
        alike = first.setdefault(law, module)
        costs[module] = law.up_to(batch_pkts).as_json() if alike == module else alike
    if found.in_queue is not None:
        costs[ANY_IN_QUEUE] = found.in_queue.up_to(batch_pkts).as_json()
    change = {**change, "costs": costs, "costs_origin": origin}
    # Costs of before hops were profiled have 0.
    if found.loop.get("hop_send_per_pkt_ns"):
        change["hop_costs"] = {key: ns for key, ns in found.loop.items() if key.startswith("hop_")}
    return change


def controlled(
    pipeline: Mapping[str, Any], wanted: ControlOptions
) -> tuple[dict[str, Any], ControlOptions]:
    """The pipeline as its daemon gets it, and the part of `wanted` that remains to be set.

    The pipeline's own controller gets its costs; a controller in `wanted` replaces it.
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
    """A pipeline's `controller` with the costs of each module, unless it already has them."""
    if "costs" in controller:
        return dict(controller)
    asked = {"name": controller["name"]}
    if "costs_file" in controller:
        asked["costs"] = controller["costs_file"]
    return {**controller, **with_costs(asked, pipeline)}


def as_started(socket: Path, saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pipeline that the daemon was started with, if it still runs: profiles are stored for that
    one. A saved pipeline also has every default and every current table entry."""
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
