# SPDX-License-Identifier: BSD-3-Clause
"""loader.py - finds and loads the extension `_native`: the simulator and the controllers in C++.

A wheel contains it; in a source tree `tools/build.sh run native` puts it into build/python.
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
    graph_number: int  # counts moves of parts: each changes the model
    unreplayed_pkts: int  # packets of captures that no worker has taken yet

    def run_until(self, t_ns: int) -> None:
        """Runs until this virtual time."""

    def drain(self) -> None:
        """Lets all packets inside leave, without waiting for age limits."""

    def model(self) -> dict[str, Any]:
        """The graph as controllers see it."""

    def show(self, what: str) -> Any:
        """A daemon's answer to `show`."""

    def set_controller(self, name: str, settings: dict[str, Any]) -> None:
        """Chooses the controller that decides in step()."""

    def estimate_costs(self, told: Mapping[str, Any]) -> None:
        """Controllers see estimates from sampled executions from now on, as in a daemon, which
        begin with these costs, instead of the true costs."""

    def step(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The period since the last step, and the controller's decision, which is now in force."""

    def period(self) -> dict[str, Any]:
        """The period since the last one, for an external controller."""

    def apply(self, decision: dict[str, Any]) -> None:
        """Applies a decision, all of it or nothing."""

    def move(self, parts: dict[str, str]) -> None:
        """Moves parts to workers: {module: worker}, all of them or none."""

    def edit(self, changes: Mapping[str, Any]) -> None:
        """Changes buffers, SLOs, generators and costs; stops workers."""

    def record(self, packets: int = 0, firings: int = 0) -> None:
        """Records the paths of the next `packets` packets and the next `firings` firings."""

    def rest_recorder(self) -> None:
        """Call once per period: ends recording when everything requested is there."""

    def recorded(self) -> dict[str, dict[str, Any]]:
        """The recorded data, as columns."""


class NativePlanner(Protocol):
    """Plans for one specification; docs/planning.md describes their content."""

    def plan(self, request: dict[str, Any]) -> dict[str, Any]:
        """One plan: controller, settings, slo_ns by flow, merged {module, gate}."""


def extension_path(env: Mapping[str, str] = os.environ) -> Path | None:
    """The extension's file: $BATCHPLANE_NATIVE, in this package, or in the tree's build folder."""
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
    """The extension module. Raises RunFailed with the fix if there is none."""
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
    """A planner for the specification of a simulation. Raises BadInput."""
    native = load_native()
    try:
        planner: NativePlanner = native.Planner(spec)
    except native.ConfigError as error:
        raise BadInput(config_problems(error, spec)) from error
    return planner


def first_mistake(error: Exception, file: str) -> BadInput:
    """The first mistake that the extension found, for input outside a pipeline file."""
    message, where, fix = (str(part) for part in error.args[0][0])
    return BadInput(Problem(message, file, where, fix))


def config_problems(error: Exception, spec: dict[str, Any]) -> list[Problem]:
    """The mistakes that the extension found, at their positions in the pipeline file."""
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
