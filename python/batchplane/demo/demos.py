# SPDX-License-Identifier: BSD-3-Clause
"""demos.py - pipelines between Linux hosts in namespaces: set up, shown at work, cleaned up."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..base.problems import RunFailed
from .netns import CommandFailed, Hosts, Namespace, clean_environment, missing_for_hosts

HOME, INSIDE = "192.168.1.10", "192.168.1.1"
INTERNET, OUTSIDE = "203.0.113.9", "203.0.113.1"
HOME6, INSIDE6 = "2001:db8:1::10", "2001:db8:1::1"
INTERNET6, OUTSIDE6 = "2001:db8:2::9", "2001:db8:2::1"
TOOLS = ("ping", "curl")
_FILE_MB = 64
_PORT = 8080

_PICTURE = f"""\
  home                      home_gateway                     internet
  {HOME:<15} --lan-- {INSIDE} | {OUTSIDE} --wan-- {INTERNET}
  {HOME6:<15}  --lan-- {INSIDE6} | {OUTSIDE6} --wan-- {INTERNET6}"""


class _Gateway:
    """The daemon in the router's namespace, spoken to by the command line as any user would."""

    def __init__(self, space: Namespace, folder: Path) -> None:
        self._space = space
        self._environment = clean_environment(BATCHPLANE_RUN_DIR=str(folder))

    def say(self, *words: str) -> str:
        """Runs `batchplane WORDS` there; its output."""
        done = subprocess.run(
            [*self._space.enter(), sys.executable, "-P", "-m", "batchplane", *words],
            capture_output=True, text=True, env=self._environment, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RunFailed(f"batchplane {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout


def home_gateway(out: Console) -> None:
    """A home behind a NAT gateway, and a server in the internet that it downloads from.

    Raises RunFailed where no namespaces can be made, and when what is shown does not work.
    """
    reason = missing_for_hosts(TOOLS)
    if reason is not None:
        raise RunFailed(
            f"the demo needs network namespaces: {reason}",
            "run it as root, or: sysctl -w kernel.unprivileged_userns_clone=1",
        )
    with tempfile.TemporaryDirectory(prefix="bpd") as name:
        folder = Path(name)
        try:
            with contextlib.closing(home_hosts()) as hosts, _running(hosts, folder) as gateway:
                out.print(Text(_PICTURE, "bold"))
                _show_at_work(out, hosts, gateway, folder)
        except CommandFailed as error:
            raise RunFailed(f"the demo failed: {error}") from error
    out.print("cleaned up, nothing left running")


def home_hosts(mtu_bytes: int = 1500) -> Hosts:
    """`home` on lan0 and `internet` on wan0, with both IP versions; close() it."""
    hosts = Hosts(has_ipv6=True)
    try:
        for name, device, address, router, address6, router6 in (
            ("home", "lan0", HOME, INSIDE, HOME6, INSIDE6),
            ("internet", "wan0", INTERNET, OUTSIDE, INTERNET6, OUTSIDE6),
        ):
            host = hosts.add_host(name, device, f"{address}/24", router, mtu_bytes)
            host.run("ip", "-6", "address", "add", f"{address6}/64", "dev", "eth0", "nodad")
            host.run("ip", "-6", "route", "add", "default", "via", router6, "dev", "eth0")
    except BaseException:
        hosts.close()
        raise
    return hosts


@contextlib.contextmanager
def _running(hosts: Hosts, folder: Path) -> Iterator[_Gateway]:
    gateway = _Gateway(hosts.router, folder)
    gateway.say("start", "home_gateway", "lan=lan0", "wan=wan0")
    try:
        yield gateway
    finally:
        gateway.say("stop")


def _show_at_work(out: Console, hosts: Hosts, gateway: _Gateway, folder: Path) -> None:
    home = hosts.hosts["home"]
    for title, command in (
        ("ping through the gateway", ("ping", "-n", "-c", "3", "-i", "0.2", INTERNET)),
        ("ping over IPv6", ("ping", "-n", "-c", "3", "-i", "0.2", INTERNET6)),
    ):
        _step(out, title, command)
        out.print(home.run(*command).strip().splitlines()[-2])
    _download(out, hosts, folder)
    for title, words in (
        ("NAT translations", ("show", "nat")),
        ("packets the gateway dropped", ("show", "drops")),
    ):
        _step(out, title, ("batchplane", *words))
        out.print(gateway.say(*words).rstrip(), markup=False)


def _download(out: Console, hosts: Hosts, folder: Path) -> None:
    original, copy, log = folder / "file", folder / "copy", folder / "server.log"
    original.write_bytes(os.urandom(_FILE_MB << 20))
    url = f"http://{INTERNET}:{_PORT}/file"
    with log.open("wb") as words:
        hosts.hosts["internet"].start(
            "python3", "-m", "http.server", str(_PORT), "--directory", str(folder), stderr=words
        )
    home = hosts.hosts["home"]
    _wait_for(lambda: _answers(home), "waiting for the web server to answer through the gateway")
    command = ("curl", "-sS", "--max-time", "120", "-o", str(copy), url)
    _step(out, f"download of {_FILE_MB} MB", command)
    started_s = time.monotonic()
    home.run(*command, timeout_s=130)
    taken_s = time.monotonic() - started_s
    is_same = _digest(original) == _digest(copy)
    if not is_same:
        raise RunFailed("the downloaded file differs from the original")
    clients = {line.split()[0] for line in log.read_text().splitlines() if "GET" in line}
    out.print(
        f"{_FILE_MB / taken_s:.0f} MB/s, byte-identical; "
        f"the server saw {', '.join(sorted(clients))} instead of {HOME}"
    )


def _answers(home: Namespace) -> bool:
    told = home.run(
        "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "2",
        f"http://{INTERNET}:{_PORT}/", is_good=False,
    )  # fmt: skip
    return told.startswith("200")


def _wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise RunFailed(f"timed out after {timeout_s:g} s {what}")
        time.sleep(0.05)


def _step(out: Console, title: str, command: tuple[str, ...]) -> None:
    out.print(Text.assemble(("\n" + title, "bold"), (f"   {' '.join(command)}", "dim")))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


DEMOS: dict[str, Callable[[Console], None]] = {"home-gateway": home_gateway}
