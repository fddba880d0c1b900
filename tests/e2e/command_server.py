# SPDX-License-Identifier: BSD-3-Clause
"""command_server.py - runs `batchplane ...` hundreds of times without loading Python each time.

An interpreter that has loaded the command line forks for each command. The child runs the command's
own main(), with its own arguments, environment, folder and namespaces.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO

MAX_REQUEST_BYTES = 1 << 17
# Not loaded in advance: it needs numpy, whose threads should start in the process that uses them.
LOADED_LATE = ("control",)
# User first: it gives the right to enter the others.
NAMESPACES = ("user", "net", "mnt")


class CommandServer:
    """Runs commands, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path,
        space_pid: int | None, timeout_s: float,
    ) -> tuple[int, str, str]:  # fmt: skip
        """Exit code, output and errors of a command, here or in the namespaces of a process."""
        request = {"words": list(words), "environment": dict(environment), "folder": str(folder),
                   "space_pid": space_pid}  # fmt: skip
        with self._lock, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            line = json.dumps(request).encode()
            socket.send_fds(self._ours, [line], [out.fileno(), err.fileno()])
            pid = int(self._ours.recv(64))
            self._ours.settimeout(timeout_s)
            try:
                code = int(self._ours.recv(64))
            except TimeoutError:
                self._ours.settimeout(None)
                os.kill(pid, signal.SIGKILL)
                self._ours.recv(64)
                raise subprocess.TimeoutExpired(list(words), timeout_s, _text(out)) from None
            self._ours.settimeout(None)
            return code, _text(out), _text(err)

    def close(self) -> None:
        """Ends the server, which exits when its connection closes."""
        self._ours.close()
        self._process.wait(10)


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


# --- in the server's process ---------------------------------------------------------------------


def _enter(pid: int) -> None:
    """Moves this process into the namespaces of another one."""
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.ExitStack() as files:
        # All are opened first: after the first setns, /proc shows another namespace's processes.
        spaces = [files.enter_context(open(f"/proc/{pid}/ns/{name}")) for name in NAMESPACES]
        for name, space in zip(NAMESPACES, spaces, strict=True):
            if libc.setns(space.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), f"setns {name}")


def _become(request: dict[str, object], fds: Sequence[int]) -> None:
    """Turns a child of the server into its command."""
    for number, fd in enumerate(fds, start=1):
        os.dup2(fd, number)
        os.close(fd)
    if request["space_pid"] is not None:
        _enter(int(str(request["space_pid"])))
    os.chdir(str(request["folder"]))
    os.environ.clear()
    os.environ.update(dict(request["environment"]))  # type: ignore[call-overload]
    sys.argv = ["batchplane", *list(request["words"])]  # type: ignore[call-overload]


def _serve(connection: socket.socket) -> bool:
    """Forks for each request. True in each child, False at the end."""
    while True:
        line, fds, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 2)
        if not line:
            return False
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become(json.loads(line), fds)
            return True
        for fd in fds:
            os.close(fd)
        connection.send(str(pid).encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.send(str(code).encode())


def _main() -> None:
    from batchplane.cli.app import HOMES, main

    for home in HOMES.keys() - LOADED_LATE:
        import_module(f"batchplane.cli.{home}")
    # The garbage collector must not touch loaded objects in a child, or their pages would be
    # copied.
    gc.freeze()
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        main()


if __name__ == "__main__":
    _main()
