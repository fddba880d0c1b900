# SPDX-License-Identifier: BSD-3-Clause
"""test_cli.py - the commands end to end against the fake daemon: output, JSON, exit codes, one-line errors."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from batchplane.cli.app import HOMES, main, make_app
from batchplane.daemon.process import find_daemon, list_daemons, stop_daemon

PIPELINE = """\
name: demo
params: {burst: 32}
modules:
  in: {kind: source, burst_pkts: ${burst}}
  ttl: {kind: ttl}
  out: {kind: sink}
connect: [in -> ttl -> out]
flows:
  - {name: all, path: [in, ttl, out], delay_slo: 1ms}
"""
COMMAND = [sys.executable, "-m", "batchplane"]


@pytest.fixture
def file(environment: Path, tmp_path: Path) -> Iterator[str]:
    """A good pipeline; daemons that a test leaves running are stopped."""
    path = tmp_path / "demo.yaml"
    path.write_text(PIPELINE)
    yield str(path)
    for daemon in list_daemons(environment):
        stop_daemon(daemon)


class Caller:
    """Runs commands in this process, as starting Python takes longer than most commands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
        self._monkeypatch = monkeypatch
        self._capfd = capfd

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        """Output and errors of one command, which must end with `code`."""
        self._monkeypatch.setattr(sys, "argv", ["batchplane", *words])
        self._capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capfd.readouterr()
        assert (ended.value.code or 0) == code, out + err
        assert "Traceback" not in err
        return out, err

    def json(self, *words: str, code: int = 0) -> Any:
        """The parsed output with --json."""
        return json.loads(self(*words, "--json", code=code)[0])


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Caller:
    """Runs commands and gives what they print."""
    return Caller(monkeypatch, capfd)


def test_run_reports_and_leaves_nothing(call: Caller, file: str, environment: Path) -> None:
    out, err = call("run", file, "burst=16", "--duration", "0.5", "--interval", "0.2")
    lines = out.splitlines()
    assert lines[0].startswith("t=0s  in=") and "Mpps" in lines[0]
    assert err.splitlines() == [
        "lookup scalar | memory: heap | w0 on core 1 | generator on core 0 | fake"
    ]
    assert any("packets = " in line and "all packets accounted for" in line for line in lines)
    assert "\x1b" not in out + err
    assert list_daemons(environment) == []


def test_run_for_programs(call: Caller, file: str, environment: Path) -> None:
    data = call.json("run", file, "--duration", "0.2")
    assert data["hello"]["pipeline"] == "demo" and data["in_pps"] > 0
    assert data["snapshot"]["runtime"]["modules"][0]["name"] == "in"
    assert list_daemons(environment) == []


SCENARIO = """\
duration: 400ms
events:
  - {at: 0, set: ttl.trigger=4}
  - {at: 1ms, stall: w0, for: 1ms}
  - {at: 2ms, table: ttl, verb: unheard_of, args: {}}
"""


def test_run_with_a_scenario(call: Caller, file: str, tmp_path: Path, environment: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO)
    out, err = call("run", file, "--scenario", str(scenario), "--quiet")
    lines = err.splitlines()
    stall = f"warning: {scenario}:4: stall w0: this has no effect here"
    assert lines[0].startswith(stall)
    assert "t=0 ns: set ttl.trigger=4" in lines
    assert "demo, measured: " in out
    scenario.write_text("events: [{at: 1s, set: tll.trigger=4}]")
    _, err = call("run", file, "--scenario", str(scenario), code=2)
    assert err == (
        f"error: {scenario}:1: tll.trigger=4: there is no module 'tll' (did you mean 'ttl'?)\n"
    )
    assert list_daemons(environment) == []


def run_in_background(file: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*COMMAND, "run", file, "--interval", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("t=")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_runs_report_and_stop(file: str, environment: Path, number: int) -> None:
    process = run_in_background(file)
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0 and "all packets accounted for" in out
    assert list_daemons(environment) == []


def test_a_killed_run_leaves_its_daemon(call: Caller, file: str, environment: Path) -> None:
    process = run_in_background(file)
    process.kill()
    process.communicate(timeout=20)
    assert [row["name"] for row in call.json("list")] == ["demo"]
    assert call("stop")[0].startswith("stopped demo: ")
    assert list_daemons(environment) == []


def test_run_with_settings(call: Caller, file: str) -> None:
    call("start", file, "--set", "ttl.trigger=8", "--name", "other")
    saved = call("save", "--name", "other")[0]
    assert "ttl: {kind: ttl, trigger: 8}" in saved
    _, err = call("run", file, "--set", "tll.trigger=8", code=2)
    assert (
        err
        == "error: command line: tll.trigger=8: there is no module 'tll' (did you mean 'ttl'?)\n"
    )
    assert [daemon.name for daemon in list_daemons()] == ["other"]


def test_start_show_set_save_stop(call: Caller, file: str, tmp_path: Path) -> None:
    assert call("start", file)[0].startswith("started demo (pid ")
    assert [line.split()[0] for line in call("list")[0].splitlines()] == ["name", "demo"]
    for what in (
        "runtime",
        "buffers",
        "flows",
        "drops",
        "ports",
        "tables",
        "graph",
        "generators",
        "all",
    ):
        call("show", what)
        assert call.json("show", what) is not None
    assert call("show", "graph", "--dot")[0].startswith('digraph "demo" {')
    assert call("set", "ttl.trigger=16", "idle=hold")[0].splitlines() == [
        "set trigger ttl: trigger_pkts 16",
        "set idle: mode hold",
    ]
    assert call.json("set", "ttl", "add", "prefix=10.0.0.0/8", "gate=1") == {
        "added": {"prefix": "10.0.0.0/8", "gate": 1}
    }
    saved = tmp_path / "saved.yaml"
    assert call("save", str(saved))[0].startswith("saved to ")
    assert "ttl: {kind: ttl, trigger: 16}" in saved.read_text()
    call("save", str(tmp_path / "saved.json"))
    assert json.loads((tmp_path / "saved.json").read_text())["modules"]["ttl"]["trigger_pkts"] == 16
    assert "packet 1  10.0.0.1 > 20.0.0.1 UDP" in call("trace", "1", "udp")[0]
    call("attach", "--duration", "0.2", "--interval", "0.1")
    report = call.json("stop")
    assert report[0]["name"] == "demo" and report[0]["report"]["balance"]["is_exact"]
    assert call("list")[0] == "no daemon is running\n"


def test_apply_tells_the_difference_first(call: Caller, file: str, tmp_path: Path) -> None:
    call("start", file)
    more = tmp_path / "more.yaml"
    more.write_text(
        PIPELINE.replace("in -> ttl ->", "in -> ttl -> extra ->")
        .replace("  out:", "  extra: {kind: ttl}\n  out:")
        .replace("[in, ttl, out]", "[in, ttl, extra, out]")
    )
    assert call("apply", str(more), "--dry-run")[0].splitlines() == [
        "+ extra",
        "3 kept with their state",
        "nothing was changed (--dry-run)",
    ]
    assert "extra" not in call("save")[0]
    assert call("apply", str(more))[0].splitlines()[-1] == "applied"
    assert "extra" in call("save")[0]
    more.write_text(PIPELINE.replace("kind: ttl", "kind: tll"))
    assert "did you mean 'ttl'" in call("apply", str(more), code=2)[1]
    assert "extra" in call("save")[0]


def test_check(call: Caller, file: str) -> None:
    out, _ = call("check", file)
    assert out.splitlines() == [f"{file} is good: 3 modules, 2 edges, 1 flows", "pool pkts 4096"]
    assert call.json("check", file) == {"ok": True, "errors": [], "plan": {"pool_pkts": 4096}}
    Path(file).write_text(
        PIPELINE.replace("kind: ttl", "kind: ttl, mend: 1").replace("-> out", "-> uot")
    )
    out, _ = call("check", file, code=2)
    assert out.splitlines() == [
        f"error: {file}:5: modules.ttl.mend: unknown parameter 'mend' (did you mean 'mend_checksum'?)",
        f"error: {file}:7: connect: there is no module 'uot' (did you mean 'out'?)",
        f"{file}: 2 mistakes",
    ]
    assert call.json("check", file, code=2)["errors"][0]["key"] == "modules.ttl.mend"


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["run", "nowhere"], 2, "error: there is no pipeline 'nowhere'"),
        (["run", "l2l4"], 2, "error: there is no pipeline 'l2l4' (did you mean 'l2l3'?)"),
        (
            ["run", "{file}", "bursd=3"],
            2,
            "error: command line: bursd: unknown parameter 'bursd' (did you mean 'burst'?)",
        ),
        (["show"], 1, "error: no daemon is running (start one: batchplane start PIPELINE)"),
        (
            ["stop", "x"],
            1,
            "error: no daemon called 'x' is running (start it: batchplane start PIPELINE)",
        ),
        (["modules", "tll"], 2, "error: there is no module kind 'tll' (did you mean 'ttl'?)"),
        (
            ["show", "runtime", "--dot"],
            2,
            "error: command line: show: --dot works only with `show graph` (show graph --dot)",
        ),
    ],
)
def test_errors_are_one_line(
    call: Caller, file: str, words: list[str], code: int, line: str
) -> None:
    _, err = call(*[word.replace("{file}", file) for word in words], code=code)
    assert err.startswith(line) and len(err.splitlines()) == 1


def test_errors_of_a_running_daemon(call: Caller, file: str) -> None:
    call("start", file)
    assert call("set", "ttl", "burn", code=2)[1] == (
        "error: x.yaml:3: modules.ttl: module 'ttl' has no command 'burn' (try add)\n"
    )
    assert call("show", "runtme", code=2)[1] == (
        "error: command line: show: 'runtme' cannot be shown (did you mean 'runtime'?)\n"
    )
    assert "already running" in call("start", file, code=1)[1]
    os.kill(find_daemon().pid, signal.SIGKILL)
    assert "no daemon is running" in call("show", code=1)[1]


def test_unknown_options_are_bad_input(call: Caller, file: str) -> None:
    assert "No such option" in call("run", file, "--fast", code=2)[1]


def test_debug_shows_the_trace(environment: Path) -> None:
    done = subprocess.run([*COMMAND, "show", "--debug"], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_modules_and_schema(call: Caller, environment: Path) -> None:
    assert "ttl" in call("modules")[0]
    out = call("modules", "ttl")[0]
    assert "mend_checksum" in out and "true" in out and "ttl_expired" in out
    assert call.json("modules", "ttl")["params"][0]["name"] == "mend_checksum"
    schema = json.loads(call("schema")[0])
    assert schema["title"] == "Batchplane pipeline, version 1"
    kinds = schema["$defs"]["ModuleModel"]["properties"]["kind"]["enum"]
    assert "ttl" in kinds and "sink" in kinds


def test_doctor(call: Caller) -> None:
    assert {"cpu", "hugepages", "tun"} <= {finding["topic"] for finding in call.json("doctor")}
    assert call("doctor")[0].splitlines()[0].startswith(("ok  ", "warn"))


def read_terminal(words: list[str], until: str) -> str:
    """The terminal output of a command until a text appears in it; the command is then
    interrupted."""
    pid, handle = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable,
            [*COMMAND, *words],
            {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "50"},
        )
    shown = b""
    deadline = time.monotonic() + 120  # in case it never appears
    while until.encode() not in shown and time.monotonic() < deadline:
        if select.select([handle], [], [], 0.5)[0]:
            shown += os.read(handle, 1 << 16)
    os.kill(pid, signal.SIGINT)
    while True:
        try:
            part = os.read(handle, 1 << 16)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(handle)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return shown.decode()


def test_a_terminal_gets_the_live_view(file: str, environment: Path) -> None:
    shown = read_terminal(["run", file, "--interval", "0.1"], "ns/pkt")
    assert "t=0s" not in shown and "\x1b[" in shown and "all packets accounted for" in shown
    assert list_daemons(environment) == []


def test_completion_knows_pipelines_and_daemons(call: Caller, file: str) -> None:
    call("start", file)
    for words, wanted in (("batchplane run l2", "l2l3"), ("batchplane attach d", "demo")):
        done = subprocess.run(
            COMMAND,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "_BATCHPLANE_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": "2",
                "_TYPER_COMPLETE_ARGS": words,
            },
        )
        assert wanted in done.stdout.split(), done


@pytest.mark.parametrize("home", HOMES)
def test_each_command_is_found_in_its_module(home: str) -> None:
    """The table lists each module's commands, in their order."""
    command: Any = typer.main.get_command(make_app([home]))
    assert tuple(command.commands) == HOMES[home]


def test_commands_that_query_a_daemon_do_not_load_the_language() -> None:
    """A command loads only what it needs."""
    asked = "import sys; from batchplane.cli.app import make_app; make_app(['daemons', 'show']); "
    told = "print([name for name in sys.modules if name.startswith('batchplane.lang.schema')])"
    done = subprocess.run([sys.executable, "-c", asked + told], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
