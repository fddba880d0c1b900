# SPDX-License-Identifier: BSD-3-Clause
"""Batchplane: describe packet pipelines, run them, watch and change them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .client import Client, DaemonError
from .daemon import StartOptions, find_daemon, list_daemons, start_daemon, stop_daemon
from .load import load_pipeline
from .pipeline import Gate, Module, Options, Pipeline
from .problems import BadInput, BatchplaneError, Problem, RunFailed

if TYPE_CHECKING:
    from .sim_result import Result
    from .sim_spec import Machine
    from .simulation import Simulation

__version__ = "0.1.0"

# Loaded when first asked for: commands that talk to a daemon start without them.
_LAZY = {"Machine": "sim_spec", "Result": "sim_result", "Simulation": "simulation"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BadInput",
    "BatchplaneError",
    "Client",
    "DaemonError",
    "Gate",
    "Machine",
    "Module",
    "Options",
    "Pipeline",
    "Problem",
    "Result",
    "RunFailed",
    "Simulation",
    "StartOptions",
    "find_daemon",
    "list_daemons",
    "load_pipeline",
    "start_daemon",
    "stop_daemon",
]
