# SPDX-License-Identifier: BSD-3-Clause
"""test_clients.py - clients that are killed, cut off, silent, busy or another user's."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading

import pytest
from commands import Commands, is_running
from load import LOAD, assert_traffic_goes_on, canonical, in_pkts
from waiting import wait_until

CLIENTS = {
    "watch": ["show", "all", "--watch", "--interval", "0.05", "--json"],
    "attach": ["attach", "--interval", "0.05"],
    "trace": ["trace", "100", "udp port 9", "--timeout", "30"],
    "set": ["set", "ttl_*.trigger=16"],
    "apply": ["apply", "l2l3", *LOAD, "trigger=8"],
    "save": ["save"],
}


@pytest.mark.parametrize("words", CLIENTS.values(), ids=CLIENTS.keys())
def test_killed_clients_leave_the_daemon_alone(loaded: Commands, words: list[str]) -> None:
    """SIGKILL at several points of the client's life; afterwards the daemon works as before."""
    for after_s in (0.2, 0.45, 0.7, 1.0):
        process = loaded.popen(*words)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=after_s)
        process.kill()
        process.communicate()
    assert_traffic_goes_on(loaded)
    assert loaded.json("show", "runtime")["balance"]["is_exact"]
    loaded.good("set", "ttl_0_0.trigger=4")


def test_idle_clients_do_not_lock_out_active_ones(loaded: Commands) -> None:
    path = str(loaded.folder / "l2l3.sock")
    with contextlib.ExitStack() as stack:
        for _ in range(80):
            idle = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            idle.connect(path)
        assert loaded.json("show", "runtime")["balance"]["is_exact"]
        loaded.stop("l2l3")


def test_a_killed_run_leaves_its_daemon_to_stop(batchplane: Commands) -> None:
    process = batchplane.popen("run", "l2l3", *LOAD)
    wait_until(lambda: list(batchplane.folder.glob("l2l3.sock")), "the daemon is there")
    with batchplane.client("l2l3") as client:
        wait_until(lambda: in_pkts(client) > 0, "traffic flows")
    process.kill()
    process.communicate()
    assert_traffic_goes_on(batchplane)
    batchplane.stop("l2l3")


def test_connections_cut_in_the_middle_of_everything(loaded: Commands) -> None:
    """Half a request, a request whose answer is not read, half a bulk edit: none has an effect."""
    path = str(loaded.folder / "l2l3.sock")
    route = {"prefix": "172.16.0.0/24", "gate": 1}
    requests = [
        {"v": 1, "id": 1, "cmd": "show", "args": {"what": "all"}},
        {
            "v": 1,
            "id": 2,
            "cmd": "apply",
            "args": {"pipeline": canonical("l2l3", *LOAD, "trigger=4")},
        },
        {
            "v": 1,
            "id": 3,
            "cmd": "module",
            "args": {"module": "lookup_0", "verb": "add", "args": route},
        },
        {
            "v": 1,
            "id": 4,
            "cmd": "trace",
            "args": {"count": 5, "filter": "tcp", "timeout_ns": 20 * 10**9},
        },
    ]
    for request in requests:
        line = json.dumps(request).encode() + b"\n"
        for part in (line[: len(line) // 2], line, line * 2):
            with socket.socket(socket.AF_UNIX) as raw:
                raw.connect(path)
                raw.sendall(part)
    with loaded.client("l2l3") as client:
        begun = client.request("bulk", phase="begin", module="lookup_0", verb="add")
        client.request(
            "bulk",
            phase="append",
            token=begun["token"],
            items=[{"prefix": "172.17.0.0/24", "gate": 0}],
        )
    assert_traffic_goes_on(loaded)
    with loaded.client("l2l3") as client:
        listed = json.dumps(client.module("lookup_0", "list", {"within": "172.16.0.0/12"}))
        assert "172.17.0.0" not in listed, "a bulk edit without its commit has no effect"
        # The abandoned trace may still be running; edits do not wait for it.
        client.set([{"what": "trigger", "module": "ttl_0_0", "trigger_pkts": 8}])


def test_clients_that_do_not_read_slow_down_nobody(loaded: Commands) -> None:
    path = str(loaded.folder / "l2l3.sock")
    request = json.dumps({"v": 1, "id": 1, "cmd": "show", "args": {"what": "all"}}).encode() + b"\n"
    with contextlib.ExitStack() as open_ones:
        for _ in range(8):
            raw = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            raw.connect(path)
            raw.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(200):
                    raw.send(request)
        assert_traffic_goes_on(loaded)
        with loaded.client("l2l3") as client:
            client.hello()  # answered, although those above have read nothing


def test_stop_while_clients_are_busy(loaded: Commands) -> None:
    """Running traces, watches and edits do not keep the daemon from ending."""
    stop_asking = threading.Event()

    def ask() -> None:
        with contextlib.suppress(Exception), loaded.client("l2l3") as client:
            while not stop_asking.is_set():
                client.show("all")

    def wait_for_trace() -> None:
        with contextlib.suppress(Exception), loaded.client("l2l3", timeout_s=60) as client:
            client.trace(10, "tcp port 1", 60_000_000_000)

    threads = [threading.Thread(target=target) for target in (ask, ask, wait_for_trace)]
    for thread in threads:
        thread.start()
    try:
        assert_traffic_goes_on(loaded)
        loaded.stop("l2l3")  # in less than the minute that the running trace would take
    finally:
        stop_asking.set()
        for thread in threads:
            thread.join(timeout=30)


# --- who may ask ---------------------------------------------------------------------------------

_ASK = """
import socket, sys
raw = socket.socket(socket.AF_UNIX)
try:
    raw.connect(sys.argv[1])
    try:
        raw.sendall(b'{"v": 1, "id": 1, "cmd": "stop"}\\n')
    except BrokenPipeError:  # refused before it could ask; why is in the answer
        pass
    print(raw.recv(65536).decode())
except OSError as error:
    print("OSError", error.strerror)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: becoming another user needs root")
def test_another_user_is_refused(loaded: Commands) -> None:
    """Rejected by the socket's mode and, if the mode allows access, by the peer's credentials."""
    path = loaded.folder / "l2l3.sock"
    other = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/usr/bin/env",
        "python3",
        "-S",
        "-c",
    ]
    python = shutil.which("python3", path="/usr/bin:/bin")
    other[-3] = python or "python3"

    def ask() -> str:
        return subprocess.run(
            [*other, _ASK, str(path)], capture_output=True, text=True, check=False
        ).stdout

    loaded.folder.chmod(0o755)
    assert oct(path.stat().st_mode & 0o777) == oct(0o600)
    assert "Permission denied" in ask()
    path.chmod(0o666)
    told = ask()
    assert "another user" in told and '"ok":false' in told.replace(" ", ""), told
    assert is_running(loaded.pid("l2l3"))
    assert_traffic_goes_on(loaded)
