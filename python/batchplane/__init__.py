# SPDX-License-Identifier: BSD-3-Clause
"""Batchplane: describe packet pipelines, run them, watch and change them."""

import sys

# `python -m batchplane` searches the current folder for modules first, but files there are not part
# of this program. (sys.argv is ["-m", ..] while Python looks for the module.)
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    del sys.path[:1]

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base.problems import BadInput, BatchplaneError, Problem, RunFailed
from .base.version import __version__

if TYPE_CHECKING:
    from .daemon.client import Client, DaemonError
    from .daemon.process import StartOptions, find_daemon, list_daemons, start_daemon, stop_daemon
    from .lang.load import load_pipeline
    from .lang.pipeline import Gate, Module, Options, Pipeline
    from .sim.result import Result
    from .sim.simulation import Simulation
    from .sim.spec import Machine
    from .slo.controller import Controller
    from .slo.meter import Meter

# Loaded when first asked for: a command starts with what it needs alone.
_LAZY = {
    "daemon.client": ("Client", "DaemonError"),
    "daemon.process": (
        "StartOptions", "find_daemon", "list_daemons", "start_daemon", "stop_daemon",
    ),
    "lang.load": ("load_pipeline",),
    "lang.pipeline": ("Gate", "Module", "Options", "Pipeline"),
    "sim.result": ("Result",),
    "sim.simulation": ("Simulation",),
    "sim.spec": ("Machine",),
    "slo.controller": ("Controller",),
    "slo.meter": ("Meter",),
}  # fmt: skip
_HOMES = {name: home for home, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BadInput",
    "BatchplaneError",
    "Client",
    "Controller",
    "DaemonError",
    "Gate",
    "Machine",
    "Meter",
    "Module",
    "Options",
    "Pipeline",
    "Problem",
    "Result",
    "RunFailed",
    "Simulation",
    "StartOptions",
    "__version__",
    "find_daemon",
    "list_daemons",
    "load_pipeline",
    "start_daemon",
    "stop_daemon",
]
