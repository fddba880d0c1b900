# SPDX-License-Identifier: BSD-3-Clause
"""test_lifecycle.py - start, run, stop, signals under load, several daemons."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from commands import TREE, Commands, wait_gone
from load import LOAD, assert_traffic_goes_on, canonical, in_pkts
from waiting import wait_until

# --- run, start, stop ----------------------------------------------------------------------------


def test_run_reports_and_leaves_nothing_running(batchplane: Commands) -> None:
    done = batchplane.run("run", "l2l3", *LOAD, "--duration", "1")
    assert done.code == 0, done.err
    assert "sent" in done.out and "dropped" in done.out, done.out
    assert "core" in done.err, "one line says which cores, memory and lookup it uses"
    assert batchplane.pids() == []
    assert not list(batchplane.folder.glob("*.sock")) and not list(batchplane.folder.glob("*.json"))


def test_run_as_json_is_json_only(batchplane: Commands) -> None:
    done = batchplane.run("run", "simple", "--duration", "0.5", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["report"]["balance"]["is_exact"] is True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_that_is_interrupted_stops_its_daemon(
    batchplane: Commands, number: signal.Signals
) -> None:
    """Ctrl-C is a normal end: the report is printed, and nothing keeps running."""
    process = batchplane.popen("run", "l2l3", *LOAD)
    wait_until(lambda: list(batchplane.folder.glob("l2l3.sock")), "the daemon is there")
    with batchplane.client("l2l3") as client:
        wait_until(lambda: in_pkts(client) > 0, "traffic flows")
    assert process.stdout is not None
    process.stdout.readline()  # the first line of the view: it is watching now
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "sent" in out, out
    assert batchplane.pids() == []


def test_start_list_show_stop(loaded: Commands) -> None:
    daemons = loaded.json("list")
    assert [daemon["name"] for daemon in daemons] == ["l2l3"]
    every = ("runtime", "buffers", "flows", "drops", "ports", "tables", "graph", "generators")
    answer = loaded.json("show", "all")
    assert set(answer) >= set(every)
    assert answer["drops"] == [], "nothing is lost here"
    for what in ("runtime", "flows", "tables"):
        assert loaded.good("show", what).strip(), what
    assert "digraph" in loaded.good("show", "graph", "--dot")
    loaded.stop("l2l3")
    assert loaded.json("list") == []


def test_two_daemons_side_by_side(loaded: Commands) -> None:
    """Each has its own socket and packets; commands ask which one is meant."""
    loaded.good("start", "l2l3", *LOAD, "--name", "second")
    assert_traffic_goes_on(loaded)
    assert_traffic_goes_on(loaded, "second")
    asked = loaded.run("show", "runtime")
    assert asked.code != 0 and "l2l3" in asked.err and "second" in asked.err, asked.err
    again = loaded.run("start", "l2l3", *LOAD, "--name", "second")
    assert again.code == 1 and "already running" in again.err, again.err
    loaded.stop("second")
    assert_traffic_goes_on(loaded)


# --- the end under load --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load_ends_it_cleanly(
    program: Path, folder: Path, number: signal.Signals
) -> None:
    """Exit code 0, and the log's last balance is exact: no packet in flight is missing."""
    batchplane = Commands(folder)
    pipeline = folder / "l2l3.pipeline"
    pipeline.write_text(json.dumps(canonical("l2l3", *LOAD, "trigger=32", "age_limit=10ms")))
    path = folder / "l2l3.sock"
    process = subprocess.Popen(
        [str(program), "--name", "l2l3", "--socket", str(path), str(pipeline)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        with batchplane.client("l2l3") as client:
            wait_until(lambda: in_pkts(client) > 10_000, "traffic flows")
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, err
    last = next(line for line in err.splitlines() if "stopped:" in line)
    words = last.split("stopped:")[1].split()
    came, made, sent, dropped, held = (int(words[i]) for i in (0, 4, 8, 11, 14))
    assert came + made == sent + dropped + held, last
    assert held == 0, "a normal end sends what is held"
    assert not path.exists()


def test_the_terminal_hanging_up_is_not_the_end(loaded: Commands) -> None:
    os.kill(loaded.pid("l2l3"), signal.SIGHUP)
    assert_traffic_goes_on(loaded)


def test_it_outlives_the_terminal_that_started_it(batchplane: Commands) -> None:
    """It stays in the terminal's session, so that autogroups do not make the two compete."""
    start = shlex.join([*batchplane.words(("start", "l2l3", *LOAD)), "--name", "kept"])
    words = [
        "script",
        "--quiet",
        "--return",
        "--command",
        f"{start} && ps -o sid= -p $$",
        "/dev/null",
    ]
    done = subprocess.run(
        words, env=batchplane.environment, cwd=TREE, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    pid = batchplane.pid("kept")
    assert os.getsid(pid) == int(done.stdout.split()[-1])
    assert os.getpgid(pid) == pid, "Ctrl-C would reach it"
    batchplane.stop("kept")


def test_a_daemon_that_was_killed_leaves_room_for_the_next(loaded: Commands) -> None:
    """SIGKILL leaves socket and state file; the next start removes them."""
    pid = loaded.pid("l2l3")
    os.kill(pid, signal.SIGKILL)
    wait_gone(pid)
    done = loaded.run("show", "runtime")
    assert done.code == 1 and "no daemon is running" in done.err, done.err
    loaded.good("start", "l2l3", *LOAD)
    assert_traffic_goes_on(loaded)
