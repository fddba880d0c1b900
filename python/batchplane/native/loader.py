# SPDX-License-Identifier: BSD-3-Clause
"""loader.py - finds and loads the extension `_native`: the simulator and the controllers in C++.

A wheel brings it along; in a source tree `tools/build.sh run native` puts it into build/python.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ..base.problems import BadInput, Problem, RunFailed

_NAME = "batchplane._native"


class NativeSimulation(Protocol):
    """One simulated pipeline; docs/simulator.md describes the data."""

    now_ns: int
    graph_number: int  # how often parts have moved: each time the model is another
    unreplayed_pkts: int  # of captures: what no worker has taken yet

    def run_until(self, t_ns: int) -> None:
        """Goes on to this virtual time."""

    def drain(self) -> None:
        """Lets what is inside leave, without waiting for any limit."""

    def model(self) -> dict[str, Any]:
        """The graph as controllers see it."""

    def show(self, what: str) -> Any:
        """What a daemon answers to `show`."""

    def set_controller(self, name: str, settings: dict[str, Any]) -> None:
        """Chooses who decides in step()."""

    def step(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The period since the last step, and the controller's decision, which is in force now."""

    def period(self) -> dict[str, Any]:
        """The period since the last one, for a controller elsewhere."""

    def apply(self, decision: dict[str, Any]) -> None:
        """Puts a decision into force, all of it or nothing."""

    def move(self, parts: dict[str, str]) -> None:
        """Moves parts to workers: {module: worker}, all of them or none."""

    def edit(self, changes: Mapping[str, Any]) -> None:
        """Changes buffers, promises, generators, costs; stops workers."""

    def record(self, packets: int = 0, firings: int = 0) -> None:
        """From now on keeps the ways of so many packets, and so many firings."""

    def rest_recorder(self) -> None:
        """Once a period: ends recording when everything wanted is there."""

    def recorded(self) -> dict[str, dict[str, Any]]:
        """What was kept, as columns."""


class NativePlanner(Protocol):
    """Plans of one specification; docs/planning.md describes what they hold."""

    def plan(self, request: dict[str, Any]) -> dict[str, Any]:
        """One plan: controller, settings, slo_ns by flow, merged {module, gate}."""


def extension_path(env: Mapping[str, str] = os.environ) -> Path | None:
    """Its file: $BATCHPLANE_NATIVE, beside this package, or in the tree's build folder."""
    given = env.get("BATCHPLANE_NATIVE")
    if given:
        return Path(given)
    package = Path(__file__).resolve().parents[1]
    for folder in (package, package.parents[1] / "build" / "python"):
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            candidate = folder / f"_native{suffix}"
            if candidate.is_file():
                return candidate
    return None


@lru_cache(maxsize=1)
def load_native() -> Any:
    """The extension module. Raises RunFailed with what to do when there is none."""
    path = extension_path()
    if path is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise RunFailed(
            f"the simulator is not built for Python {version}", "tools/build.sh run native"
        )
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        raise RunFailed(f"{path} is not a Python extension", "tools/build.sh run native")
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise RunFailed(
            f"{path} cannot be loaded: {error}", "build it again: tools/build.sh run native"
        ) from error
    sys.modules[_NAME] = module
    return module


def make_simulation(spec: dict[str, Any]) -> NativeSimulation:
    """A simulation of a canonical pipeline with costs and routes. Raises BadInput."""
    native = load_native()
    try:
        simulation: NativeSimulation = native.Simulation(spec)
    except native.ConfigError as error:
        raise BadInput(config_problems(error, spec)) from error
    return simulation


def make_planner(spec: dict[str, Any]) -> NativePlanner:
    """Plans of what a simulation would be made of. Raises BadInput."""
    native = load_native()
    try:
        planner: NativePlanner = native.Planner(spec)
    except native.ConfigError as error:
        raise BadInput(config_problems(error, spec)) from error
    return planner


def first_mistake(error: Exception, file: str) -> BadInput:
    """Of those that the extension found, for input that stands in no pipeline file."""
    message, where, fix = (str(part) for part in error.args[0][0])
    return BadInput(Problem(message, file, where, fix))


def config_problems(error: Exception, spec: dict[str, Any]) -> list[Problem]:
    """The mistakes that the extension found, at their places in the pipeline file."""
    from ..lang.canonical import Document, user_key

    document = Document(spec, file=str(spec.get("name", "")))
    problems = []
    found = error.args[0] if error.args and isinstance(error.args[0], list) else error.args
    for entry in found:
        if isinstance(entry, str):
            problems.append(Problem(entry))
            continue
        message, where, fix = (str(part) for part in entry)
        problems.append(Problem(message, document.where(where), user_key(where), fix))
    return problems or [Problem("the simulator refused the pipeline and said nothing")]
