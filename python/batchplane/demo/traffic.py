# SPDX-License-Identifier: BSD-3-Clause
"""traffic.py - iperf3 between hosts, concurrent pings, and the bytes that a tree sent."""

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

from ..base.percentile import percentile
from ..base.problems import RunFailed
from ..daemon.client import Client
from .netns import Namespace
from .stage import wait_for

_FIRST_PORT = 5201
_PING_INTERVAL_S = 0.02
_LISTENING = "0A"  # a socket state in the kernel's notation
# Bytes of an Ethernet frame besides its own: preamble, checksum and inter-frame gap.
ETHERNET_BYTES = 24


@dataclass(frozen=True)
class Load:
    """The traffic that a host sends or receives all the time."""

    host: Namespace
    is_download: bool
    connections: int = 1
    udp_mbps: int = 0  # 0: TCP

    def words(self, server: str, port: int) -> list[str]:
        """The client's command, which runs until it is killed."""
        udp = ["-u", "-b", f"{self.udp_mbps}M", "-l", "1400"]
        # CUBIC fills queues, as most senders do; the machine's default may not.
        kind = udp if self.udp_mbps else ["-C", "cubic"]
        return [
            "iperf3", "-c", server, "-p", str(port), "-t", "3600",
            "-P", str(self.connections), *kind, *(["-R"] if self.is_download else []),
        ]  # fmt: skip


@contextlib.contextmanager
def running(
    server: Namespace, address: str, loads: Sequence[Load], warm_up_s: float
) -> Iterator[None]:
    """Starts all loads, lets TCP windows open and queues fill, and ends the loads afterwards."""
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
    """Checks the kernel's tables: a test connection would be the only one that iperf3 serves."""
    tables = [Path(f"/proc/{host.pid}/net/tcp{version}") for version in ("", "6")]
    texts = [path.read_text() for path in tables if path.exists()]
    rows = [row.split() for text in texts for row in text.splitlines()]
    # Connections of an earlier server may still exist on the same port.
    return any(row[1].endswith(f":{port:04X}") and row[3] == _LISTENING for row in rows)


@dataclass(frozen=True)
class Seen:
    """Results of a measurement: each host's round-trip times, and the rate of each counter."""

    waits_ms: list[list[float]]  # sorted; empty where none was answered
    bps: dict[int, float]  # of each counter


def watch(
    count: Callable[[], dict[int, int]], pings: Sequence[tuple[Namespace, str]], run_s: float
) -> Seen:
    """Pings from the hosts, with these arguments, while bytes are counted."""
    with contextlib.ExitStack() as stack:
        began_s, before = time.monotonic(), count()
        running_pings = []
        for host, words in pings:
            told = stack.enter_context(tempfile.NamedTemporaryFile())
            # The last answers may come late.
            pings_of_host = str(round(run_s / _PING_INTERVAL_S))
            command = ("ping", "-n", "-i", str(_PING_INTERVAL_S), "-c", pings_of_host, "-W", "5")
            running_pings.append(
                (host.start(*command, *words.split(), stdout=told, stderr=told), told.name)
            )
        for process, _ in running_pings:
            process.wait(run_s + 60)
        after = count()
        # Not shorter than the time between the counts, so that no rate seems to exceed its ceiling.
        taken_s = time.monotonic() - began_s
        waits_ms = [_waits_ms(Path(name).read_text()) for _, name in running_pings]
    return Seen(waits_ms, {key: (after[key] - before[key]) * 8 / taken_s for key in after})


def _waits_ms(told: str) -> list[float]:
    return sorted(float(text) for text in re.findall(r"time=([\d.]+) ms", told))


def sent_by_flow(gateway: Client, tree: str) -> dict[int, int]:
    """Bytes that each flow of a tree has sent, with link overhead."""
    flows = gateway.show("tables", module=tree)["flows"]
    return {
        flow["flow"]: flow["released_bytes"] + ETHERNET_BYTES * flow["released_pkts"]
        for flow in flows
    }


def received_bytes(host: Namespace) -> dict[int, int]:
    """Bytes that a host's eth0 has received, with link overhead, under key 0."""
    for line in Path(f"/proc/{host.pid}/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "eth0":
            n_bytes, n_pkts = counts.split()[:2]
            return {0: int(n_bytes) + ETHERNET_BYTES * int(n_pkts)}
    raise RunFailed("a host has no eth0")


def shown_ms(ordered: Sequence[float], p: float) -> str:
    """A percentile for tables."""
    return f"{percentile(ordered, p):.1f}" if ordered else "none"
