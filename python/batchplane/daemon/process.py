# SPDX-License-Identifier: BSD-3-Clause
"""process.py - starts, finds and stops daemons; each has a socket, a state file and a log."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, BatchplaneError, Problem, RunFailed, suggestion
from .client import Client, ConnectionLost
from .run_folder import create_own, is_own_socket, open_lock, read_own, remove_own, run_dir

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
# DPDK's own log lines, such as "EAL: ..." and "LPM: ...": the daemon reports the same in plain
# words.
_LIBRARY = re.compile(r"[A-Z][A-Z0-9_ ]*: ")
START_TIMEOUT_S = 60.0
_POLL_S = 0.01

# Daemons that this process started: as their parent it has to reap them.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Daemon:
    """A running daemon as found in the run folder."""

    name: str
    pid: int
    socket: Path
    pipeline: str = ""
    uptime_ns: int = 0
    version: str = ""

    def as_json(self) -> dict[str, Any]:
        """For `batchplane list --json`."""
        return {
            "name": self.name,
            "pid": self.pid,
            "pipeline": self.pipeline,
            "uptime_ns": self.uptime_ns,
            "version": self.version,
            "socket": str(self.socket),
        }


def find_program(env: Mapping[str, str] = os.environ) -> Path:
    """The batchplaned to use: $BATCHPLANE_DAEMON, the tree's build, or the one on the PATH."""
    given = env.get("BATCHPLANE_DAEMON")
    if given:
        if os.access(given, os.X_OK):
            return Path(given)
        raise RunFailed(
            f"BATCHPLANE_DAEMON={given} is not a program", "unset it, or build it: make build"
        )
    built = Path(__file__).resolve().parents[3] / "build" / "batchplaned"
    if os.access(built, os.X_OK):
        return built
    found = shutil.which("batchplaned")
    if found:
        return Path(found)
    raise RunFailed("batchplaned is not built", "make build, or set BATCHPLANE_DAEMON=PATH")


# --- find ----------------------------------------------------------------------------------------


def list_daemons(folder: Path | None = None) -> list[Daemon]:
    """The daemons that answer; removes the files of dead ones."""
    folder = folder or run_dir()
    found = []
    for path in sorted(folder.glob("*.sock")):
        daemon = _ask(path) if is_own_socket(path) else None
        if daemon is not None:
            found.append(daemon)
    return found


def _ask(path: Path) -> Daemon | None:
    name, state = path.stem, read_state(path)
    pid = state["pid"] if type(state.get("pid")) is int else 0
    try:
        with Client(path, timeout_s=2) as client:
            hello = client.hello()
        return Daemon(
            name,
            int(hello["pid"]),
            path,
            str(hello.get("pipeline", "")),
            int(hello["uptime_ns"]),
            str(hello.get("daemon", "")),
        )
    except ConnectionLost:
        if not is_alive(pid):
            remove_files(path)
        return None
    except (BatchplaneError, AttributeError, KeyError, TypeError, ValueError):
        # Hung, or not one of our daemons: it is listed with the others.
        return Daemon(name, pid, path, str(state.get("pipeline", "?")), 0, "does not answer")


def read_state(path: Path) -> dict[str, Any]:
    """The state file that the daemon wrote beside its socket."""
    try:
        state = json.loads(read_own(path.with_suffix(".json")))
        return state if isinstance(state, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def remove_files(path: Path) -> None:
    """Removes the socket and the other files of a dead daemon, but not its log."""
    for leftover in (path, path.with_suffix(".json"), path.with_suffix(".pipeline")):
        remove_own(leftover)


def is_alive(pid: int) -> bool:
    """Whether a process with that id runs; a zombie does not count."""
    try:
        os.kill(pid, 0) if pid > 0 else None
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return pid > 0 and state[:1] != ["Z"]
    except (OSError, ValueError, OverflowError):
        return False


def find_daemon(name: str | None = None, folder: Path | None = None) -> Daemon:
    """The daemon called `name`, or the only one that runs."""
    daemons = list_daemons(folder)
    names = [daemon.name for daemon in daemons]
    if name is not None:
        for daemon in daemons:
            if daemon.name == name:
                return daemon
        fix = suggestion(name, names) if names else "start it: batchplane start PIPELINE"
        raise RunFailed(f"no daemon called '{name}' is running", fix)
    if not daemons:
        raise RunFailed("no daemon is running", "start one: batchplane start PIPELINE")
    if len(daemons) > 1:
        raise RunFailed(
            f"several daemons are running: {', '.join(names)}", "choose one with --name"
        )
    return daemons[0]


# --- start ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StartOptions:
    """Options for starting a daemon; None leaves the choice to the daemon."""

    name: str | None = None
    cores: str | None = None
    memory_mb: int | None = None
    duration_s: float | None = None


def start_daemon(
    pipeline: dict[str, Any],
    options: StartOptions,
    program: Path | None = None,
    folder: Path | None = None,
    timeout_s: float = START_TIMEOUT_S,
) -> Daemon:
    """Starts a daemon that outlives this process, and waits until traffic flows."""
    program = program or find_program()
    folder = folder or run_dir()
    name = options.name or str(pipeline.get("name", "pipeline"))
    if not _NAME.fullmatch(name):
        raise BadInput(
            Problem(
                f"'{name}' is not a name for a daemon",
                "command line",
                "--name",
                "letters, digits, _ . -",
            )
        )
    path = folder / f"{name}.sock"
    if len(str(path).encode()) > 100:
        raise RunFailed(
            f"{path} is too long for a socket", "set BATCHPLANE_RUN_DIR to a shorter one"
        )
    with _only_one(folder / f"{name}.lock", name):
        if is_own_socket(path) and _ask(path) is not None:
            raise RunFailed(
                f"a daemon called '{name}' is already running",
                f"batchplane stop {name}, or choose --name",
            )
        remove_files(path)
        file = path.with_suffix(".pipeline")
        _write_private(file, json.dumps(pipeline))
        process = _spawn(program, path, file, options, name)
        _children[process.pid] = process
        _wait_until_ready(process, path, timeout_s)
        if not path.with_suffix(".json").exists():
            state = {
                "pid": process.pid,
                "name": name,
                "started_s": int(time.time()),
                "version": "",
                "pipeline": pipeline.get("name", ""),
            }
            _write_private(path.with_suffix(".json"), json.dumps(state))
    return Daemon(name, process.pid, path, str(pipeline.get("name", "")))


def _spawn(
    program: Path, path: Path, file: Path, options: StartOptions, name: str
) -> subprocess.Popen[bytes]:
    command: list[str] = [str(program), "--name", name, "--socket", str(path)]
    if options.memory_mb is not None:
        command += ["--memory-mb", str(options.memory_mb)]
    if options.cores:
        command += ["--cores", options.cores]
    if options.duration_s is not None:
        command += ["--duration-s", f"{options.duration_s:g}"]
    log = create_own(path.with_suffix(".log"))
    fcntl.fcntl(log, fcntl.F_SETFL, fcntl.fcntl(log, fcntl.F_GETFL) | os.O_APPEND)
    try:
        return subprocess.Popen(
            [*command, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C must not reach the daemon. Not a new session: autogroups (doctor.py) would make
            # it compete with the terminal's.
            process_group=0,
        )
    except OSError as error:
        raise RunFailed(
            f"{program} does not start: {error.strerror}", "build it again: make build"
        ) from error
    finally:
        os.close(log)


def _wait_until_ready(process: subprocess.Popen[bytes], path: Path, timeout_s: float) -> None:
    """Reads the log until it says `ready`; a pipe would break if this process ended first."""
    deadline = time.monotonic() + timeout_s
    log = path.with_suffix(".log")
    try:
        while "ready" not in _log_lines(log):
            if wait_gone(process.pid, _POLL_S):
                # Read again: the last line may be newer than the lines above.
                raise _start_failure(process.wait(), _log_lines(log), log)
            if time.monotonic() > deadline:
                raise RunFailed(
                    f"the daemon was not ready within {timeout_s:g} s",
                    f"check its log: {log}",
                )
    except BaseException:
        _end(process.pid, path)
        raise


def _log_lines(log: Path) -> list[str]:
    try:
        return read_own(log).decode(errors="replace").splitlines()
    except OSError:
        return []


def _start_failure(code: int, lines: list[str], log: Path) -> BatchplaneError:
    told = [line.removeprefix("batchplaned: ") for line in lines if not _LIBRARY.match(line)]
    told = [line.removeprefix("error: ") for line in told if line.strip()]
    if code == 2:
        nothing = Problem("the daemon refused the pipeline and said nothing", str(log))
        return BadInput([Problem(line) for line in told] or [nothing])
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    return RunFailed(f"the daemon {how}: {told[-1] if told else 'it said nothing'}", f"log: {log}")


@contextlib.contextmanager
def _only_one(lock: Path, name: str) -> Iterator[None]:
    """Prevents two concurrent starts of daemons with the same name."""
    handle = open_lock(lock)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunFailed(
                f"a daemon called '{name}' is being started", "wait, or choose --name"
            ) from error
        yield
        lock.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(create_own(path), "w") as file:
        file.write(text)


# --- stop ----------------------------------------------------------------------------------------


def stop_daemon(daemon: Daemon, timeout_s: float = 15.0) -> dict[str, Any]:
    """Asks the daemon to stop and waits until it is gone; one that hangs is ended by signal."""
    report: dict[str, Any] = {}
    try:
        with Client(daemon.socket, timeout_s=timeout_s) as client:
            report = client.stop()
    except RunFailed:
        if daemon.pid <= 0:
            raise
        _end(daemon.pid, daemon.socket)
    if not wait_gone(daemon.pid, timeout_s):
        _end(daemon.pid, daemon.socket)
    remove_files(daemon.socket)
    return report


def _end(pid: int, path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if wait_gone(pid, 5.0):
            break
    remove_files(path)


def wait_gone(pid: int, timeout_s: float) -> bool:
    """Waits until the process has ended; false on timeout."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        gone = bool(select.select([handle], [], [], timeout_s)[0])
    finally:
        os.close(handle)
    if gone and pid in _children:
        _children.pop(pid).wait()
    return gone
