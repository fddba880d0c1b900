# SPDX-License-Identifier: BSD-3-Clause
"""test_run_folder.py - the folder of sockets: its owner, links in it, odd files and dead
daemons."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batchplane.base.problems import RunFailed
from batchplane.daemon.process import StartOptions, list_daemons, start_daemon, stop_daemon
from batchplane.daemon.run_folder import create_own, open_lock, read_own, run_dir

PIPELINE: dict[str, Any] = {"version": 1, "name": "demo", "modules": {"in": {"kind": "source"}}}


@pytest.fixture
def started(environment: Path) -> Iterator[Path]:
    start_daemon(PIPELINE, StartOptions())
    yield environment
    for daemon in list_daemons(environment):
        if daemon.name == "demo":
            stop_daemon(daemon)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_write_into_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(RunFailed, match=f"can be written into by others .chmod 700 {folder}."):
        run_dir({"BATCHPLANE_RUN_DIR": str(folder)})
    folder.chmod(0o755)
    assert run_dir({"BATCHPLANE_RUN_DIR": str(folder)}) == folder


def test_a_new_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert (
            run_dir({"BATCHPLANE_RUN_DIR": str(tmp_path / "run")}).stat().st_mode & 0o777 == 0o700
        )
    finally:
        os.umask(before)


def test_a_link_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(RunFailed, match="is not a folder, or a link to one"):
        run_dir({"BATCHPLANE_RUN_DIR": str(tmp_path / "link")})


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: folders of others can be made by root only")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(RunFailed, match="belongs to another user"):
        run_dir({"BATCHPLANE_RUN_DIR": str(folder)})


def test_a_start_writes_through_no_link(environment: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for suffix in (".log", ".pipeline", ".json"):
        (environment / f"demo{suffix}").symlink_to(victim)
    daemon = start_daemon(PIPELINE, StartOptions())
    stop_daemon(daemon)
    assert victim.read_text() == "precious"
    log = environment / "demo.log"
    assert not log.is_symlink() and log.stat().st_mode & 0o777 == 0o600


def test_files_are_new_and_private(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "a").hardlink_to(tmp_path / "victim")
    os.write(handle := create_own(tmp_path / "a"), b"new")
    os.close(handle)
    assert (tmp_path / "victim").read_text() == "precious" and read_own(tmp_path / "a") == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunFailed, match="folder cannot be written"):
        create_own(tmp_path / "folder")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(RunFailed, match="link cannot be locked"):
        open_lock(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "folder", "nothing"):
        with pytest.raises(OSError):
            read_own(tmp_path / name)


def _answering(folder: Path, name: str, answer: bytes) -> socket.socket:
    """A socket that gives each client the same answer."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(folder / f"{name}.sock"))
    listener.listen(4)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return listener


def test_odd_files_and_dead_daemons_do_no_harm(started: Path, tmp_path: Path) -> None:
    (started / "folder.sock").mkdir()
    (started / "folder.sock" / "x").touch()
    (started / "file.sock").write_text("no socket")
    (started / "gone.sock").symlink_to(tmp_path / "nothing")
    (started / "link.sock").symlink_to(started / "demo.sock")
    os.mkfifo(started / "pipe.sock")
    os.mkfifo(started / "pipe.json")
    for i, state in enumerate(
        ('{"pid": "x"}', '{"pid": 1e99}', '{"pid": 99999999999999}', "[" * 50000, "[]")
    ):
        (started / f"dead{i}.json").write_text(state)
        dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        dead.bind(str(started / f"dead{i}.sock"))
        dead.close()
    (started / "dead0.pipeline").mkdir()
    hello = {"id": 1, "ok": True, "result": {"version": 1}}
    answers = {"list": b"[]\n", "text": b"text\n", "bare": json.dumps(hello).encode() + b"\n"}
    answers["none"] = b'{"id": 1, "ok": true, "result": null}\n'
    listeners = [_answering(started, name, answer) for name, answer in answers.items()]
    try:
        found = {daemon.name: daemon.version for daemon in list_daemons(started)}
    finally:
        for listener in listeners:
            listener.close()
    assert found.pop("demo") != "does not answer"
    assert found == dict.fromkeys(answers, "does not answer")
    assert (started / "file.sock").read_text() == "no socket"
    assert not list(started.glob("dead*.sock"))
