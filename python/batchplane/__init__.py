# SPDX-License-Identifier: BSD-3-Clause
"""Batchplane: describe packet pipelines, run them, watch and change them."""

from .client import Client, DaemonError
from .daemon import StartOptions, find_daemon, list_daemons, start_daemon, stop_daemon
from .load import load_pipeline
from .pipeline import Gate, Module, Options, Pipeline
from .problems import BadInput, BatchplaneError, Problem, RunFailed

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "BatchplaneError",
    "Client",
    "DaemonError",
    "Gate",
    "Module",
    "Options",
    "Pipeline",
    "Problem",
    "RunFailed",
    "StartOptions",
    "find_daemon",
    "list_daemons",
    "load_pipeline",
    "start_daemon",
    "stop_daemon",
]
