# SPDX-License-Identifier: BSD-3-Clause
"""decide.py - a Python controller for a running daemon: every period it gets the counters and sends
its decision over the socket."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from ..base.interrupts import Interrupted, interruptible
from ..base.problems import BadInput, BatchplaneError, Problem, RunFailed
from ..daemon.client import Client, ConnectionLost, DaemonError
from ..daemon.process import Daemon
from .file import load_controller
from .options import REMOTE, as_started, controller_set, with_costs
from .python import ControllerFault, GuardedController

# How long the daemon waits for a decision beyond the controller's own limit before it reports it.
_SLACK_S = 1.0
_START_S = 20.0
_END_S = 2.0
_MAX_TOLD = 10


@dataclass(frozen=True)
class ControlRequest:
    """Which controller, its time limit for a step, and its settings."""

    controller: str  # FILE.py or FILE.py:NAME
    limit_s: float = 1.0
    words: tuple[str, ...] = ()  # controller.period=5ms and so on


_BROKEN = {"cost_per_batch_ns", "cost_per_pkt_ns", "fill_mean_pkts"}  # fractional columns


def as_snapshot(period: Mapping[str, Any]) -> dict[str, Any]:
    """A period in the simulator's form: columns are arrays."""
    snapshot = dict(period)
    for section in ("modules", "flows", "tasks", "inputs"):
        snapshot[section] = {
            name: np.asarray(values, dtype=np.float64 if name in _BROKEN else np.uint64)
            for name, values in period[section].items()
        }
    return snapshot


class Driver:
    """Runs one controller on one daemon."""

    def __init__(self, client: Client, socket: Path, request: ControlRequest, errors: Console):
        self._client = client
        self._socket = socket
        self._request = request
        self._errors = errors
        self._graph: int | None = None
        self._n_told = 0
        self._guard = self._made()
        self.steps = 0

    def _made(self) -> GuardedController:
        model = self._client.show("model")
        controller = load_controller(self._request.controller, model)
        return GuardedController(controller, model, self._request.limit_s)

    def choose(self) -> None:
        """Makes the daemon wait for this program's decisions from now on."""
        words = (f"controller={REMOTE}", *self._request.words)
        running = as_started(self._socket, self._client.save())
        change = with_costs(controller_set(words), running)
        limit_ns = round((self._request.limit_s + _SLACK_S) * 1e9)
        change |= {"label": self._request.controller, "answer_limit_ns": limit_ns}
        try:
            self._client.set([change])
        except DaemonError as error:
            raise BadInput(error.problems) from error

    def step(self, after: int) -> int:
        """Waits for a period later than `after` and answers it; returns its number."""
        period = self._client.request("period", timeout_s=10, after=after)
        number = int(period["number"])
        if self._graph not in (None, period["graph"]):
            self._guard = self._made()
        self._graph = period["graph"]
        decision = self._guard.decide(as_snapshot(period), int(period["now_ns"]))
        if decision is None:
            self._tell_fault(number, self._guard.faults[-1])
        else:
            self._send(number, decision)
        self.steps += 1
        return number

    def _send(self, number: int, decision: Mapping[str, Any]) -> None:
        told: dict[str, Any] = {
            key: list(decision[key]) for key in ("credits", "polls") if decision.get(key)
        }
        try:
            self._client.request("decide", number=number, changes=list(decision["changes"]), **told)
        except DaemonError as error:  # the graph may have changed between period and decision
            self._tell(error.lines()[0])

    def _tell_fault(self, number: int, fault: ControllerFault) -> None:
        message = f"{self._request.controller}: {fault.message}"
        self._client.request("decide", number=number, fault=message)
        self._tell(f"period {number}: {fault.message}; the last good decision stays in force")
        if self._guard.is_given_up:
            raise RunFailed(message)

    def _tell(self, line: str) -> None:
        self._n_told += 1
        if self._n_told <= _MAX_TOLD:
            more = (
                " (further ones are only counted; see `show control`)"
                if self._n_told == _MAX_TOLD
                else ""
            )
            self._errors.print(Text(line + more, "yellow"), soft_wrap=True)


def control(daemon: Daemon, request: ControlRequest, errors: Console) -> int:
    """Decides until Ctrl-C, until another controller is chosen, or until the daemon ends."""
    with Client(daemon.socket) as client, interruptible():
        driver = Driver(client, daemon.socket, request, errors)
        driver.choose()
        errors.print(Text(f"{request.controller} decides for {daemon.name}", "dim"), soft_wrap=True)
        why = "stopped: the last decision stays in force"
        try:
            number = 0
            while True:
                number = driver.step(number)
        except DaemonError as error:
            why = error.problems[0].message
        except ConnectionLost:
            why = "the daemon has ended"
        except Interrupted:
            pass
    errors.print(Text(f"decided {driver.steps} periods; {why}", "dim"), soft_wrap=True)
    return 0


@contextlib.contextmanager
def deciding(daemon: Daemon, request: ControlRequest, errors: Console) -> Iterator[None]:
    """Runs the controller in its own process while the block runs, so that it cannot harm this
    one."""
    command = [sys.executable, "-P", "-m", "batchplane", "control", request.controller]
    command += ["--name", daemon.name, "--limit", f"{request.limit_s:g}s"]
    command += [word for setting in request.words for word in ("--set", setting)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _wait_until_it_decides(daemon, process)
        yield
    finally:
        process.terminate()
        try:
            _, told = process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, told = process.communicate()
        for line in told.splitlines()[1:-1]:
            errors.print(Text(line, "yellow"), soft_wrap=True)


def _wait_until_it_decides(daemon: Daemon, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + _START_S
    with Client(daemon.socket) as client:
        while not client.show("control").get("has_program"):
            if process.poll() is not None:
                raise _start_failure(process)
            if time.monotonic() > deadline_s:
                raise RunFailed(f"the controller did not start within {_START_S:g} s")
            time.sleep(0.02)


def _start_failure(process: subprocess.Popen[str]) -> BatchplaneError:
    told = [line.removeprefix("error: ") for line in (process.stderr or ()) if line.strip()]
    lines = [line.strip() for line in told] or ["the controller ended without a message"]
    if process.returncode == 2:
        return BadInput([Problem(line) for line in lines])
    return RunFailed(lines[-1])
