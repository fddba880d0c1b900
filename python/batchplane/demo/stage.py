# SPDX-License-Identifier: BSD-3-Clause
"""stage.py - common parts of the demos: a gateway to talk to, a download, explanations."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..base.problems import RunFailed
from .netns import CommandFailed, Namespace, clean_environment, missing_for_hosts

_PORT = 8080


class Gateway:
    """The daemon in the router's namespace, used through the command line like any user does."""

    def __init__(self, space: Namespace, folder: Path) -> None:
        self._space = space
        self._environment = clean_environment(BATCHPLANE_RUN_DIR=str(folder))

    def say(self, *words: str) -> str:
        """Runs `batchplane WORDS` there and returns its output."""
        done = subprocess.run(
            [*self._space.enter(), sys.executable, "-P", "-m", "batchplane", *words],
            capture_output=True, text=True, env=self._environment, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RunFailed(f"batchplane {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout


@contextlib.contextmanager
def started(space: Namespace, folder: Path, *words: str) -> Iterator[Gateway]:
    """A gateway between `batchplane start WORDS` and `batchplane stop`."""
    gateway = Gateway(space, folder)
    gateway.say("start", *words)
    try:
        yield gateway
    finally:
        gateway.say("stop")


@contextlib.contextmanager
def showing(out: Console, tools: Sequence[str]) -> Iterator[Path]:
    """A folder for a demo that needs these tools; at a good end it says that all is cleaned up.

    Raises RunFailed if namespaces cannot be created, or if the demo fails.
    """
    check_can_be_shown(tools)
    with tempfile.TemporaryDirectory(prefix="bpd") as name:
        try:
            yield Path(name)
        except CommandFailed as error:
            raise RunFailed(f"the demo failed: {error}") from error
    out.print("cleaned up, nothing left running")


def check_can_be_shown(tools: Sequence[str]) -> None:
    """Raises RunFailed if namespaces cannot be created, or a tool is missing."""
    reason = missing_for_hosts(tools)
    if reason is None:
        return
    if "not installed" in reason:
        raise RunFailed(f"the demo cannot be shown: {reason}")
    raise RunFailed(
        f"the demo needs network namespaces: {reason}",
        "run it as root, or: sysctl -w kernel.unprivileged_userns_clone=1",
    )


def download(
    out: Console, client: Namespace, server: tuple[Namespace, str], folder: Path, file_mb: int
) -> str:
    """Downloads a file from the server, a host with its address, and prints the throughput.

    Returns the addresses that the server saw. Raises RunFailed if the file has changed.
    """
    original, copy, log = folder / "file", folder / "copy", folder / "server.log"
    original.write_bytes(os.urandom(file_mb << 20))
    host, address = server
    url = f"http://{address}:{_PORT}/file"
    with log.open("wb") as words:
        host.start(
            "python3", "-m", "http.server", str(_PORT), "--directory", str(folder), stderr=words
        )
    wait_for(
        lambda: _answers(client, address),
        "waiting for the web server to answer through the gateway",
    )
    command = ("curl", "-sS", "--max-time", "120", "-o", str(copy), url)
    step(out, f"download of {file_mb} MB", command)
    started_s = time.monotonic()
    client.run(*command, timeout_s=130)
    taken_s = time.monotonic() - started_s
    if _digest(original) != _digest(copy):
        raise RunFailed("the downloaded file differs from the original")
    clients = {line.split()[0] for line in log.read_text().splitlines() if "GET" in line}
    out.print(f"{file_mb / taken_s:.0f} MB/s, byte-identical", end="")
    return ", ".join(sorted(clients))


def _answers(client: Namespace, address: str) -> bool:
    told = client.run(
        "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "2",
        f"http://{address}:{_PORT}/", is_good=False,
    )  # fmt: skip
    return told.startswith("200")


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise RunFailed(f"timed out after {timeout_s:g} s {what}")
        time.sleep(0.05)


def step(out: Console, title: str, command: tuple[str, ...]) -> None:
    out.print(Text.assemble(("\n" + title, "bold"), (f"   {' '.join(command)}", "dim")))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
