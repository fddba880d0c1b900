# SPDX-License-Identifier: BSD-3-Clause
"""traffic.py - iperf3 between hosts, pings beside it, and what a tree sent meanwhile."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..base.problems import RunFailed
from ..daemon.client import Client
from .netns import Namespace
from .stage import wait_for

_FIRST_PORT = 5201
_PING_INTERVAL_S = 0.02
_LISTENING = "0A"  # a state, as the kernel writes it
# What a frame takes on Ethernet besides its bytes: preamble, checksum and gap.
ETHERNET_BYTES = 24


@dataclass(frozen=True)
class Load:
    """What a host sends, or gets sent, all the time."""

    host: Namespace
    is_download: bool
    connections: int = 1
    udp_mbps: int = 0  # 0: TCP

    def words(self, server: str, port: int) -> list[str]:
        """The client's command, which runs until it is ended."""
        udp = ["-u", "-b", f"{self.udp_mbps}M", "-l", "1400"]
        # CUBIC fills queues, as most senders do; a machine's default may be one that does not.
        kind = udp if self.udp_mbps else ["-C", "cubic"]
        return [
            "iperf3", "-c", server, "-p", str(port), "-t", "3600",
            "-P", str(self.connections), *kind, *(["-R"] if self.is_download else []),
        ]  # fmt: skip


@contextlib.contextmanager
def running(
    server: Namespace, address: str, loads: Sequence[Load], warm_up_s: float
) -> Iterator[None]:
    """Starts all of them, lets windows open and queues fill, and ends them at last."""
    started: list[subprocess.Popen[Any]] = []
    try:
        ports = range(_FIRST_PORT, _FIRST_PORT + len(loads))
        started += [server.start("iperf3", "-s", "-p", str(port)) for port in ports]
        for port in ports:
            wait_for(partial(_listens, server, port), "waiting for iperf3 to listen")
        clients = [
            load.host.start(*load.words(address, port), stderr=subprocess.PIPE, text=True)
            for load, port in zip(loads, ports, strict=True)
        ]
        started += clients
        time.sleep(warm_up_s)
        yield
        for client in clients:
            if client.poll() is not None:
                _, told = client.communicate()
                raise RunFailed(f"iperf3 ended before its time: {told.strip()}")
    finally:
        for process in started:
            process.kill()
            process.wait()


def _listens(host: Namespace, port: int) -> bool:
    """By the tables of the kernel, since a connection would be the one that iperf3 serves."""
    tables = [Path(f"/proc/{host.pid}/net/tcp{version}") for version in ("", "6")]
    texts = [path.read_text() for path in tables if path.exists()]
    rows = [row.split() for text in texts for row in text.splitlines()]
    # Connections of a server before may still be there, at the same port.
    return any(row[1].endswith(f":{port:04X}") and row[3] == _LISTENING for row in rows)


@dataclass(frozen=True)
class Seen:
    """What happened in a while: each pinging host's waits, and what each flow got."""

    waits_ms: list[list[float]]  # sorted; empty where none was answered
    bps: dict[int, float]  # of what was counted


def watch(
    count: Callable[[], dict[int, int]], pings: Sequence[tuple[Namespace, str]], run_s: float
) -> Seen:
    """Pings from hosts, with these words, while bytes are counted."""
    with contextlib.ExitStack() as stack:
        began_s, before = time.monotonic(), count()
        running_pings = []
        for host, words in pings:
            told = stack.enter_context(tempfile.NamedTemporaryFile())
            # Answers to the last may come late.
            pings_of_host = str(round(run_s / _PING_INTERVAL_S))
            command = ("ping", "-n", "-i", str(_PING_INTERVAL_S), "-c", pings_of_host, "-W", "5")
            running_pings.append(
                (host.start(*command, *words.split(), stdout=told, stderr=told), told.name)
            )
        for process, _ in running_pings:
            process.wait(run_s + 60)
        after = count()
        # No shorter than what was counted took: a ceiling is never told to be broken by it.
        taken_s = time.monotonic() - began_s
        waits_ms = [_waits_ms(Path(name).read_text()) for _, name in running_pings]
    return Seen(waits_ms, {key: (after[key] - before[key]) * 8 / taken_s for key in after})


def _waits_ms(told: str) -> list[float]:
    return sorted(float(text) for text in re.findall(r"time=([\d.]+) ms", told))


def sent_by_flow(gateway: Client, tree: str) -> dict[int, int]:
    """Bytes that each flow of a tree has sent, as the link counts them."""
    flows = gateway.show("tables", module=tree)["flows"]
    return {
        flow["flow"]: flow["released_bytes"] + ETHERNET_BYTES * flow["released_pkts"]
        for flow in flows
    }


def received_bytes(host: Namespace) -> dict[int, int]:
    """What has come in at a host's eth0, as the link counts it, under 0."""
    for line in Path(f"/proc/{host.pid}/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "eth0":
            n_bytes, n_pkts = counts.split()[:2]
            return {0: int(n_bytes) + ETHERNET_BYTES * int(n_pkts)}
    raise RunFailed("a host has no eth0")


def shown_ms(ordered: Sequence[float], p: float) -> str:
    """A percentile for tables."""
    return f"{percentile(ordered, p):.1f}" if ordered else "none"


def percentile(ordered: Sequence[float], p: float) -> float:
    """Nearest rank."""
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))]
