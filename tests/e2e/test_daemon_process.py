# SPDX-License-Identifier: BSD-3-Clause
"""test_daemon_process.py - the real daemon: start, every request, dying clients, stop under
load."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(
    os.environ.get("BATCHPLANE_DAEMON")
    or Path(__file__).resolve().parents[2] / "build" / "batchplaned"
)

PIPELINE: dict[str, Any] = {
    "version": 1,
    "name": "smoke",
    "modules": {"in": {"kind": "source"}, "ttl": {"kind": "ttl"}, "out": {"kind": "sink"}},
    "edges": [{"from": "in", "to": "ttl"}, {"from": "ttl", "to": "out"}],
    "flows": [{"name": "f", "path": ["in", "ttl", "out"], "delay_slo_ns": 1_000_000}],
}


class Daemon:
    """A daemon in its own folder, started with a pipeline as plain data."""

    def __init__(self, folder: Path, pipeline: dict[str, Any], name: str = "d", *more: str) -> None:
        self.path = folder / f"{name}.sock"
        self.file = folder / f"{name}.pipeline"
        self.file.write_text(json.dumps(pipeline))
        command = [str(PROGRAM), "--name", name, "--socket", str(self.path), *more, str(self.file)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait_ready(self) -> None:
        """Returns once traffic flows."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def finish(self) -> tuple[int, str]:
        """Exit code and log."""
        _, log = self.process.communicate(timeout=60)
        return self.process.returncode, log

    def connect(self) -> socket.socket:
        """A new connection."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(30)
        client.connect(str(self.path))
        return client

    def ask(self, cmd: str, **args: Any) -> dict[str, Any]:
        """One request on a new connection."""
        with self.connect() as client, client.makefile("rw") as file:
            file.write(json.dumps({"v": 1, "id": 1, "cmd": cmd, "args": args}) + "\n")
            file.flush()
            answer: dict[str, Any] = json.loads(file.readline())
        return answer

    def result(self, cmd: str, **args: Any) -> Any:
        """The result of a request that must succeed."""
        answer = self.ask(cmd, **args)
        assert answer["ok"], answer
        return answer["result"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, as socket paths are limited."""
    with tempfile.TemporaryDirectory(prefix="bp") as name:
        yield Path(name)


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon under full load."""
    started = Daemon(folder, PIPELINE)
    started.wait_ready()
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.communicate()


def test_counts_add_up_and_stop_reports(daemon: Daemon) -> None:
    assert daemon.result("hello")["pipeline"] == "smoke"
    assert stat.S_IMODE(daemon.path.stat().st_mode) == 0o600
    report = daemon.result("stop")["report"]
    balance = report["balance"]
    assert balance["in_pkts"] > 0
    assert (
        balance["in_pkts"] == balance["sent_pkts"] + balance["dropped_pkts"] + balance["held_pkts"]
    )
    assert report["pool"]["free_pkts"] == report["pool"]["size_pkts"]
    assert daemon.finish()[0] == 0
    assert not daemon.path.exists()


def test_live_edits_hold_under_load(daemon: Daemon) -> None:
    for trigger in (0, 8, 32, 5, 0):
        daemon.result("set", what="trigger", module="ttl", trigger_pkts=trigger)
        saved = daemon.result("save")
        assert saved["modules"]["ttl"]["trigger_pkts"] == trigger
    assert daemon.result("show", what="runtime")["balance"]["is_exact"]


def test_apply_under_load_loses_nothing(daemon: Daemon) -> None:
    wider = json.loads(json.dumps(PIPELINE))
    wider["modules"]["count"] = {"kind": "counter"}
    wider["edges"] = [
        {"from": "in", "to": "ttl"},
        {"from": "ttl", "to": "count"},
        {"from": "count", "to": "out"},
    ]
    wider["flows"][0]["path"] = ["in", "ttl", "count", "out"]
    daemon.result("set", what="trigger", module="ttl", trigger_pkts=20)
    for pipeline in (wider, PIPELINE, wider):
        assert daemon.result("apply", pipeline=pipeline)["applied"]
    wider["edges"].pop()
    assert not daemon.ask("apply", pipeline=wider)["ok"]
    report = daemon.result("stop")["report"]
    assert report["balance"]["is_exact"]
    assert daemon.finish()[0] == 0


def test_trace_follows_packets(daemon: Daemon) -> None:
    packets = daemon.result("trace", count=3, filter="udp", timeout_ns=5_000_000_000)["packets"]
    assert len(packets) == 3
    assert [event["module"] for event in packets[0]["events"]][:2] == ["ttl", "out"]
    assert daemon.result("trace", count=1, filter="tcp", timeout_ns=10_000_000)["packets"] == []
    assert not daemon.ask("trace", filter="this is no filter")["ok"]


def test_clients_may_die_at_any_point(daemon: Daemon) -> None:
    requests = [
        b'{"v":1,"id":1,"cmd":"show","args":{"what":"all"}}\n',
        b'{"v":1,"id":1,"cmd":"trace","args":{"filter":"tcp","timeout_ns":200000000}}\n',
        b'{"v":1,"id":1,"cmd":"check","args":{"pipeline":'
        + json.dumps(PIPELINE).encode()
        + b"}}\n",
        b"\xff\xfe\x00garbage\n" * 20,
        b"[" * 100_000 + b"\n",
        b"x" * 300_000,
    ]
    for request in requests:
        for cut in (1, len(request) // 2, len(request)):
            with daemon.connect() as client:
                client.sendall(request[:cut])
    assert daemon.result("hello")["name"] == "d"
    assert daemon.result("show", what="runtime")["balance"]["is_exact"]


def test_a_client_that_does_not_read_disturbs_nobody(daemon: Daemon) -> None:
    with daemon.connect() as deaf:
        deaf.setblocking(False)
        try:
            for _ in range(2000):
                deaf.send(b'{"v":1,"id":1,"cmd":"show","args":{"what":"all"}}\n')
        except BlockingIOError:
            pass
        for _ in range(20):
            assert daemon.result("show", what="flows")


def test_two_daemons_live_side_by_side(daemon: Daemon, folder: Path) -> None:
    same = Daemon(folder, PIPELINE)
    code, log = same.finish()
    assert code == 2
    assert "running at this socket already" in log
    other = Daemon(folder, PIPELINE, "e", "--duration-s", "0.2")
    code, log = other.finish()
    assert code == 0, log
    assert daemon.result("hello")["name"] == "d"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_another_user_is_refused_even_if_file_modes_allow_access(daemon: Daemon) -> None:
    asking = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(10);"
        "s.connect(sys.argv[1]); print(s.makefile().readline())"
    )
    command = ["/usr/bin/python3", "-c", asking, str(daemon.path)]
    by_rights = subprocess.run(command, capture_output=True, text=True, user=65534)
    assert "PermissionError" in by_rights.stderr
    daemon.path.parent.chmod(0o755)
    daemon.path.chmod(0o666)
    by_peer = subprocess.run(command, capture_output=True, text=True, user=65534)
    assert "belongs to another user" in by_peer.stdout, by_peer.stderr
    assert daemon.result("hello")["name"] == "d"


def test_a_signal_stops_it_with_an_exact_balance(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGTERM)
    code, log = daemon.finish()
    assert code == 0, log
    assert "stopped:" in log


def test_a_dead_daemons_socket_is_taken_over(daemon: Daemon, folder: Path) -> None:
    daemon.process.kill()
    daemon.process.wait()
    assert daemon.path.exists()
    code, log = Daemon(folder, PIPELINE, "d", "--duration-s", "0.2").finish()
    assert code == 0, log


def test_every_mistake_is_one_line(folder: Path) -> None:
    bad = json.loads(json.dumps(PIPELINE))
    bad["modules"]["ttl"] = {"kind": "tll"}
    bad["edges"][1]["to"] = "ouy"
    bad["source_map"] = {"modules.ttl": "x.yaml:7"}
    code, log = Daemon(folder, bad).finish()
    assert code == 2
    assert (
        "x.yaml:7: modules.ttl.kind: unknown kind 'tll' (did you mean 'ttl'?)" in log.splitlines()
    )
    assert any("no module 'ouy'" in line for line in log.splitlines())


def test_a_pool_too_small_names_both_numbers(folder: Path) -> None:
    small = {**PIPELINE, "engine": {"pool_pkts": 17}}
    code, log = Daemon(folder, small).finish()
    assert code == 2
    assert "a pool of 17 packets is too small" in log


def test_check_and_schema_are_json(folder: Path) -> None:
    file = folder / "p.json"
    file.write_text(json.dumps(PIPELINE))
    done = subprocess.run([PROGRAM, "--check", file], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["plan"]["pool_pkts"] > 0
    done = subprocess.run([PROGRAM, "--modules"], capture_output=True, text=True, check=True)
    kinds = {module["kind"]: module for module in json.loads(done.stdout)["modules"]}
    assert kinds["ttl"]["shape"] == "in_place"
