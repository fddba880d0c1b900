# SPDX-License-Identifier: BSD-3-Clause
"""conftest.py - a fake daemon to start and to talk to, and short pipelines to break."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batchplane.lang.canonical import Document, canonicalise
from batchplane.lang.expand import expand
from batchplane.lang.kinds import Kinds, parse_kinds
from batchplane.lang.yaml_loader import load_yaml

FAKE = Path(__file__).with_name("fake_batchplaned.py")


def _fake_kinds() -> Kinds:
    spec = importlib.util.spec_from_file_location("fake_batchplaned", FAKE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return parse_kinds(json.dumps(module.KINDS))


@pytest.fixture(scope="session")
def kinds() -> Kinds:
    """The module kinds of the fake daemon."""
    return _fake_kinds()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The fake daemon as a program, run by this Python."""
    path = tmp_path / "batchplaned"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{FAKE}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    """A run folder with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="bp") as name:
        yield Path(name)


@pytest.fixture
def environment(program: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands use the fake daemon and a run folder of their own."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(program))
    monkeypatch.setenv("BATCHPLANE_RUN_DIR", str(folder))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return folder


class ScriptedServer:
    """Answers each request line with what `script` says; bytes may be cut anywhere."""

    def __init__(self, path: Path, script: Callable[[int, bytes], list[bytes] | None]):
        self.path = path
        self.requests: list[bytes] = []
        self._script = script
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as lines:
            for number, line in enumerate(lines):
                self.requests.append(line)
                pieces = self._script(number, line)
                if pieces is None:
                    return
                for piece in pieces:
                    connection.sendall(piece)

    def close(self) -> None:
        """Ends the server; a thread in accept is woken."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waker:
            if waker.connect_ex(str(self.path)) != 0:
                pass
        self._thread.join(5)
        self._listener.close()


@pytest.fixture
def serve(
    folder: Path,
) -> Iterator[Callable[[Callable[[int, bytes], list[bytes] | None]], ScriptedServer]]:
    """Starts scripted servers; all end with the test."""
    servers: list[ScriptedServer] = []

    def start(script: Callable[[int, bytes], list[bytes] | None]) -> ScriptedServer:
        server = ScriptedServer(folder / f"s{len(servers)}.sock", script)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close()


def load(text: str, kinds: Kinds | None = None, **overrides: str) -> Document:
    """YAML text as a canonical document of the file p.yaml."""
    return canonicalise(expand(load_yaml(text, "p.yaml"), "p.yaml", overrides), kinds)


def process_gone(pid: int) -> bool:
    """True when no process of that id runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
