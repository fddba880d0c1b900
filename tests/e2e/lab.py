# SPDX-License-Identifier: BSD-3-Clause
"""lab.py - the hosts between which tests send real traffic, and conditions to wait for."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from waiting import wait_until

from batchplane.demo.netns import Hosts, Namespace, clean_environment, missing_for_hosts

__all__ = [
    "Lab",
    "Namespace",
    "clean_environment",
    "iperf3",
    "missing",
    "ping",
    "steady_pings",
    "two_hosts",
    "wait_listening",
]

Lab = Hosts


def missing() -> str | None:
    """The reason why no lab can be created here, or None."""
    reason = missing_for_hosts()
    return None if reason is None else f"NOT RUN: {reason}"


# Name, router's end, address and gateway of each host, as in pipelines/router.yaml.
ROUTED = (
    ("a", "lan0", "10.0.1.2/24", "10.0.1.1"),
    ("b", "wan0", "10.0.2.2/24", "10.0.2.1"),
)


@contextlib.contextmanager
def two_hosts(hosts: Sequence[tuple[str, str, str, str]] = ROUTED) -> Iterator[Lab]:
    """A lab with these hosts."""
    lab = Lab()
    try:
        for host in hosts:
            lab.add_host(*host)
        yield lab
    finally:
        lab.close()


def wait_listening(host: Namespace, port: int, kind: str = "tcp", timeout_s: float = 20) -> None:
    """Waits until something on the host listens on a port."""
    wanted = f":{port:04X}"

    def is_listening() -> bool:
        tables = [Path(f"/proc/{host.pid}/net/{kind}{version}") for version in ("", "6")]
        lines = [
            line for table in tables if table.exists() for line in table.read_text().splitlines()
        ]
        return any(line.split()[1].endswith(wanted) for line in lines)

    wait_until(is_listening, f"something listens on {kind} port {port}", timeout_s)


def iperf3(client: Namespace, server: str, *words: str) -> dict[str, Any]:
    """Runs iperf3 against a server on port 5201; returns the "end" section of its report."""

    def report() -> dict[str, Any] | None:
        output = client.run("iperf3", "-c", server, "-J", *words, timeout_s=120)
        told: dict[str, Any] = json.loads(output)
        # A server takes one test at a time, and may still be closing the previous one.
        return None if "server is busy" in told.get("error", "") else told

    told = wait_until(report, f"iperf3 {' '.join(words)}")
    assert "error" not in told, told
    return dict(told["end"])


def ping(lab: Lab, host: str, *words: str) -> str:
    """Output of ping, whether it succeeds or not."""
    return lab.hosts[host].run("ping", "-n", *words, is_good=False)


@contextlib.contextmanager
def steady_pings(lab: Lab, address: str, interval_s: float = 0.005) -> Iterator[None]:
    """Pings during the block and a while after it; none of them may be lost."""
    with tempfile.NamedTemporaryFile() as told:

        def answered() -> list[int]:
            text = Path(told.name).read_text()
            return [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", text)]

        process = lab.hosts["a"].start("ping", "-n", "-i", str(interval_s), address, stdout=told)
        wait_until(lambda: len(answered()) >= 20, "pings are answered")
        yield
        # Pings sent during the block are answered before those sent after it, or never.
        last = max(answered()) + 50
        wait_until(lambda: max(answered()) > last, "pings are answered after it")
        process.send_signal(signal.SIGINT)
        process.wait(10)
        numbers = answered()
        assert numbers == list(range(1, len(numbers) + 1)), "a ping was lost"
