# SPDX-License-Identifier: BSD-3-Clause
"""traffic.py - iperf3 between hosts, pings beside it, and what a tree sent meanwhile."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
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
            load.host.start(*load.words(address, port))
            for load, port in zip(loads, ports, strict=True)
        ]
        started += clients
        time.sleep(warm_up_s)
        yield
        if any(client.poll() is not None for client in clients):
            raise RunFailed("an iperf3 ended before its time")
    finally:
        for process in started:
            process.kill()
            process.wait()


def _listens(host: Namespace, port: int) -> bool:
    """By the tables of the kernel, since a connection would be the one that iperf3 serves."""
    tables = [Path(f"/proc/{host.pid}/net/tcp{version}") for version in ("", "6")]
    lines = [line for path in tables if path.exists() for line in path.read_text().splitlines()]
    return any(line.split()[1].endswith(f":{port:04X}") for line in lines)


@dataclass(frozen=True)
class Seen:
    """What happened in a while: each pinging host's waits, and what each flow got."""

    waits_ms: list[list[float]]  # sorted
    sent_bps: dict[int, float]  # by flow, as the link counts it


def watch(gateway: Client, tree: str, pings: Sequence[tuple[Namespace, str]], run_s: float) -> Seen:
    """Pings addresses from hosts while a tree of the gateway is counted."""
    with contextlib.ExitStack() as stack:
        began_s, before = time.monotonic(), _link_bytes(gateway, tree)
        running_pings = []
        for host, words in pings:
            told = stack.enter_context(tempfile.NamedTemporaryFile())
            command = ("ping", "-n", "-i", str(_PING_INTERVAL_S), "-w", str(round(run_s)))
            running_pings.append((host.start(*command, *words.split(), stdout=told), told.name))
        for process, _ in running_pings:
            process.wait(run_s + 20)
        after = _link_bytes(gateway, tree)
        # No shorter than what was counted took: a ceiling is never told to be broken by it.
        taken_s = time.monotonic() - began_s
        waits_ms = [_waits_ms(Path(name).read_text()) for _, name in running_pings]
    sent_bps = {flow: (after[flow] - before[flow]) * 8 / taken_s for flow in after}
    return Seen(waits_ms, sent_bps)


def _waits_ms(told: str) -> list[float]:
    waits = sorted(float(text) for text in re.findall(r"time=([\d.]+) ms", told))
    if not waits:
        raise RunFailed("no ping was answered")
    return waits


def _link_bytes(gateway: Client, tree: str) -> dict[int, int]:
    flows = gateway.show("tables", module=tree)["flows"]
    return {
        flow["flow"]: flow["released_bytes"] + ETHERNET_BYTES * flow["released_pkts"]
        for flow in flows
    }


def percentile(ordered: Sequence[float], p: float) -> float:
    """Nearest rank."""
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))]
