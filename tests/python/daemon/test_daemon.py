# SPDX-License-Identifier: BSD-3-Clause
"""test_daemon.py - starting, finding and stopping daemons; leftovers of dead ones."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import process_gone

from batchplane.base.problems import BadInput, RunFailed
from batchplane.daemon.client import Client
from batchplane.daemon.process import (
    StartOptions,
    _wait_until_ready,
    find_daemon,
    find_program,
    is_alive,
    list_daemons,
    run_dir,
    start_daemon,
    stop_daemon,
    wait_gone,
)

PIPELINE: dict[str, Any] = {
    "version": 1,
    "name": "demo",
    "modules": {"in": {"kind": "source", "params": {}}},
}


@pytest.fixture
def started(environment: Path) -> Iterator[Path]:
    """Stops daemons that a test left running."""
    yield environment
    for daemon in list_daemons(environment):
        stop_daemon(daemon)


def test_start_list_stop(started: Path) -> None:
    daemon = start_daemon(PIPELINE, StartOptions())
    assert [(found.name, found.pid) for found in list_daemons()] == [("demo", daemon.pid)]
    assert daemon.socket.stat().st_mode & 0o777 == 0o600
    report = stop_daemon(find_daemon())
    assert report["balance"]["is_exact"] and process_gone(daemon.pid)
    assert list_daemons() == [] and list(started.glob("*.sock")) == []
    assert sorted(path.name for path in started.iterdir()) == ["demo.log"]


def test_two_side_by_side(started: Path) -> None:
    one, two = (
        start_daemon(PIPELINE, StartOptions()),
        start_daemon(PIPELINE, StartOptions(name="two")),
    )
    assert one.pid != two.pid and [daemon.name for daemon in list_daemons()] == ["demo", "two"]
    with pytest.raises(RunFailed, match="several daemons are running: demo, two"):
        find_daemon()
    with pytest.raises(RunFailed, match="no daemon called 'tow'.*did you mean 'two'"):
        find_daemon("tow")
    stop_daemon(find_daemon("two"))
    assert find_daemon().name == "demo"


def test_a_name_is_taken_once(started: Path) -> None:
    start_daemon(PIPELINE, StartOptions())
    with pytest.raises(RunFailed, match="'demo' is already running"):
        start_daemon(PIPELINE, StartOptions())


@pytest.mark.parametrize("name", ["a/b", "", ".hidden", "x" * 80])
def test_bad_names(environment: Path, name: str) -> None:
    if name:
        with pytest.raises(BadInput, match="is not a name for a daemon"):
            start_daemon(PIPELINE, StartOptions(name=name))
    assert list(environment.iterdir()) == []


def test_nothing_runs(environment: Path) -> None:
    with pytest.raises(RunFailed, match="no daemon is running"):
        find_daemon()
    assert list(environment.iterdir()) == []


def test_stale_sockets_are_removed(environment: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(environment / "old.sock"))
    dead.close()
    (environment / "old.json").write_text('{"pid": 0}')
    (environment / "old.log").write_text("it said this\n")
    assert list_daemons() == []
    assert [path.name for path in environment.iterdir()] == ["old.log"]


def test_a_stale_socket_does_not_hinder_a_start(started: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(started / "demo.sock"))
    dead.close()
    assert start_daemon(PIPELINE, StartOptions()).name == find_daemon().name


def test_killed_daemons_leave_nothing_in_the_list(started: Path) -> None:
    daemon = start_daemon(PIPELINE, StartOptions())
    os.kill(daemon.pid, signal.SIGKILL)
    assert wait_gone(daemon.pid, 5) and not is_alive(daemon.pid)
    assert list_daemons() == [] and not daemon.socket.exists()


def test_a_refused_pipeline_is_bad_input(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "refuse")
    with pytest.raises(BadInput) as caught:
        start_daemon(PIPELINE, StartOptions())
    assert caught.value.lines() == ["p.yaml:3: modules.ttl: it is wrong (mend it)"]


def test_a_crash_at_start_shows_the_last_words(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "crash")
    with pytest.raises(RunFailed, match="ended with code 1: cannot take core 99"):
        start_daemon(PIPELINE, StartOptions())
    assert list_daemons() == []


def test_a_daemon_that_is_never_ready_is_ended(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "mute")
    with pytest.raises(RunFailed, match="not ready within 0.3 s"):
        start_daemon(PIPELINE, StartOptions(), timeout_s=0.3)
    assert list_daemons() == []


def test_the_daemon_outlives_a_killed_client(started: Path) -> None:
    code = (
        "import sys, os, signal\nfrom batchplane.daemon.process import start_daemon, StartOptions\n"
        f"d = start_daemon({PIPELINE!r}, StartOptions())\nprint(d.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    client = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20
    )
    assert client.returncode == -signal.SIGKILL
    daemon = find_daemon()
    assert daemon.pid == int(client.stdout)
    with Client(daemon.socket) as again:
        assert again.hello()["pipeline"] == "demo"


def test_program_is_found(environment: Path, tmp_path: Path) -> None:
    assert find_program().name == "batchplaned"
    with pytest.raises(RunFailed, match="is not a program"):
        find_program({"BATCHPLANE_DAEMON": str(tmp_path / "missing")})


def test_run_dir_choices(tmp_path: Path) -> None:
    assert (
        run_dir({"BATCHPLANE_RUN_DIR": str(tmp_path / "a"), "XDG_RUNTIME_DIR": "/x"})
        == tmp_path / "a"
    )
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert run_dir({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "batchplane"
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailed, match="no folder for sockets"):
        run_dir({"BATCHPLANE_RUN_DIR": str(tmp_path / "file" / "x")})


def test_the_last_log_lines_are_read(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal that reaches the log between two looks at it, just before the process ends."""
    log = environment / "demo.log"
    log.write_text("EAL: lines of a library come first\n")
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(2)"])

    def gone_with_a_word(_pid: int, _timeout_s: float) -> bool:
        with log.open("a") as file:
            file.write("demo.yaml:3: modules.x: no memory\n")
        return True

    monkeypatch.setattr("batchplane.daemon.process.wait_gone", gone_with_a_word)
    with pytest.raises(BadInput, match="no memory"):
        _wait_until_ready(process, environment / "demo.sock", 5)
