# SPDX-License-Identifier: BSD-3-Clause
"""commands.py - the real command line and the real daemon, in the test's own run folder."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from command_server import CommandServer
from lab import Namespace, clean_environment
from waiting import wait_until

from batchplane.daemon.client import Client

TREE = Path(__file__).resolve().parents[2]

# Commands that have run once in a new process, which showed that each loads what it needs.
_started_alone: set[str] = set()


@cache
def _server() -> CommandServer:
    """Runs all commands of a kind but the first."""
    server = CommandServer()
    atexit.register(server.close)
    return server


@dataclass
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard error, line by line."""
        return self.err.splitlines()


class Commands:
    """`batchplane ...`, in the tests' namespace or in a lab's."""

    def __init__(self, folder: Path, space: Namespace | None = None) -> None:
        self.folder = folder
        self.space = space
        self.environment = clean_environment(
            BATCHPLANE_RUN_DIR=str(folder),
            # Profiles are measured once, not in every test.
            XDG_CACHE_HOME=str(TREE / "build" / "e2e-cache"),
            COLUMNS="200",
            NO_COLOR="1",
        )

    def words(self, words: Sequence[str]) -> list[str]:
        """The whole command line."""
        prefix = self.space.enter() if self.space else []
        return [*prefix, sys.executable, "-m", "batchplane", *words]

    def run(self, *words: str, timeout_s: float = 180) -> Done:
        """Runs a command to its end."""
        if words[0] in _started_alone:
            space_pid = self.space.pid if self.space else None
            return Done(*_server().run(words, self.environment, TREE, space_pid, timeout_s))
        done = subprocess.run(
            self.words(words), capture_output=True, text=True, timeout=timeout_s,
            env=self.environment, cwd=TREE, check=False,
        )  # fmt: skip
        _started_alone.add(words[0])
        return Done(done.returncode, done.stdout, done.stderr)

    def good(self, *words: str, timeout_s: float = 180) -> str:
        """Runs a command that must succeed; returns its output."""
        done = self.run(*words, timeout_s=timeout_s)
        assert done.code == 0, f"{words}: {done.code}\n{done.out}{done.err}{self.log()}"
        return done.out

    def json(self, *words: str) -> Any:
        """The JSON answer of a command that must succeed."""
        return json.loads(self.good(*words, "--json"))

    def popen(self, *words: str) -> subprocess.Popen[str]:
        """Starts a command whose output can be read."""
        return subprocess.Popen(
            self.words(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=self.environment, cwd=TREE,
        )  # fmt: skip

    def client(self, name: str, timeout_s: float = 60) -> Client:
        """A connection to a daemon, for many requests."""
        return Client(self.folder / f"{name}.sock", timeout_s=timeout_s)

    def pid(self, name: str) -> int:
        """The daemon's process."""
        return int(json.loads((self.folder / f"{name}.json").read_text())["pid"])

    def pids(self) -> list[int]:
        """Live daemons with sockets in our folder."""
        found = []
        for state in self.folder.glob("*.json"):
            pid = int(json.loads(state.read_text())["pid"])
            if is_running(pid):
                found.append(pid)
        return found

    def log(self) -> str:
        """All daemons' logs, for assertion messages."""
        return "".join(
            f"\n--- {path.name}\n{path.read_text()}" for path in self.folder.glob("*.log")
        )

    def stop(self, name: str) -> dict[str, Any]:
        """Stops a daemon; returns its report, which must account for all packets."""
        pid = self.pid(name)
        answer = self.json("stop", name)
        report = answer[0] if isinstance(answer, list) else answer
        balance = report.get("report", report)["balance"]
        assert_balanced(balance)
        wait_until(lambda: not is_running(pid), "the daemon has ended")
        return dict(report.get("report", report))

    def kill_all(self) -> None:
        """Kills daemons that a failed test has left."""
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def running(commands: Commands, name: str, *words: str) -> Iterator[Commands]:
    """`batchplane start WORDS`, and at the end a stop that accounts for all packets and leaves no
    process."""
    try:
        commands.good("start", *words)
        yield commands
        commands.stop(name)
        assert commands.pids() == [], "the test left a daemon running"
    finally:
        commands.kill_all()


def is_running(pid: int) -> bool:
    """Whether the process runs; a zombie does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_balanced(balance: dict[str, Any]) -> None:
    """in + originated = sent + dropped + held."""
    came = balance["in_pkts"] + balance["originated_pkts"]
    went = balance["sent_pkts"] + balance["dropped_pkts"] + balance["held_pkts"]
    assert came == went, balance
    assert balance["is_exact"] is True, balance


def wait_gone(pid: int, timeout_s: float = 20) -> None:
    """Waits until a process has ended."""
    wait_until(lambda: not is_running(pid), f"process {pid} has ended", timeout_s)
