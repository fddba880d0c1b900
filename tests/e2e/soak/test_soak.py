# SPDX-License-Identifier: BSD-3-Clause
"""test_soak.py - under load, changes everything that can be changed and reads everything,
repeatedly."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Commands, assert_balanced

NEXTHOPS = 8
READS_PER_S = 100
# Routes for addresses that the generator does not use: all of its packets must arrive.
SPARE = [f"172.{16 + i // 256}.{i % 256}.0/24" for i in range(4000)]


class Soak:
    """Several clients at once; an error in one of them ends all."""

    def __init__(self, commands: Commands, duration_s: float) -> None:
        self.commands = commands
        self.end_s = time.monotonic() + duration_s
        self.counts: dict[str, int] = {}
        self.failures: list[BaseException] = []

    def is_over(self) -> bool:
        return bool(self.failures) or time.monotonic() >= self.end_s

    def run(self, *clients: Callable[[Any, random.Random], Iterator[float]]) -> None:
        """Each client is a generator of pauses, with its own thread and connection."""
        threads = [
            threading.Thread(target=self._run_one, args=(client, i))
            for i, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _run_one(self, client: Callable[[Any, random.Random], Iterator[float]], seed: int) -> None:
        try:
            with self.commands.client("l2l3", timeout_s=60) as connection:
                due_s = time.monotonic()
                for pause_s in client(connection, random.Random(seed)):
                    self.counts[client.__name__] = self.counts.get(client.__name__, 0) + 1
                    if self.is_over():
                        return
                    # Keeps the average pace: a slow answer is made up for, by at most a second.
                    due_s = max(due_s + pause_s, time.monotonic() - 1)
                    time.sleep(max(0.0, due_s - time.monotonic()))
        except BaseException as error:
            self.failures.append(error)


def read_all(client: Any, rng: random.Random) -> Iterator[float]:
    """The balance holds at each look, and no counter ever falls."""
    last = 0
    while True:
        balance = client.show("runtime")["balance"]
        assert_balanced(balance)
        assert balance["in_pkts"] >= last
        last = balance["in_pkts"]
        yield 1 / READS_PER_S


def edit_routes(client: Any, rng: random.Random) -> Iterator[float]:
    """Adds, changes and deletes routes, so that the table's size varies."""
    there: set[str] = set()
    while True:
        prefix = rng.choice(SPARE)
        if prefix in there and rng.random() < 0.5:
            client.module("lookup_0", "delete", {"prefix": prefix})
            there.remove(prefix)
        else:
            client.module("lookup_0", "add", {"prefix": prefix, "gate": rng.randrange(NEXTHOPS)})
            there.add(prefix)
        yield 0.002


def edit_triggers(client: Any, rng: random.Random) -> Iterator[float]:
    """Changes triggers, age limits, idle mode and SLOs, several in one step."""
    while True:
        sets: list[dict[str, Any]] = []
        for n in rng.sample(range(NEXTHOPS), 3):
            module = f"ttl_0_{n}"
            sets.append(
                {"what": "trigger", "module": module, "trigger_pkts": rng.choice([0, 1, 7, 32])}
            )
            sets.append(
                {
                    "what": "age_limit",
                    "module": module,
                    "age_limit_ns": rng.choice([20_000, 500_000]),
                }
            )
        sets.append({"what": "idle", "mode": rng.choice(["hold", "release"])})
        sets.append({"what": "slo", "flow": "flow_0_1", "delay_slo_ns": rng.choice([10**5, 10**6])})
        client.set(sets)
        yield 0.01


def look_around(client: Any, rng: random.Random) -> Iterator[float]:
    """Occasional requests: traces, tables, saves."""
    while True:
        client.trace(3, "udp", 200_000_000)
        client.show("all")
        client.show("tables", module="lookup_0")
        client.save()
        yield 0.1


def memory_kb(pid: int) -> int:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def watch_memory(
    pid: int, samples: list[tuple[float, int]]
) -> Callable[[Any, random.Random], Iterator[float]]:
    """Samples the daemon's memory twice a second."""

    def memory(client: Any, rng: random.Random) -> Iterator[float]:
        while True:
            samples.append((time.monotonic(), memory_kb(pid)))
            yield 0.5

    return memory


@pytest.mark.parametrize(
    "duration_s", [pytest.param(10, id="10s"), pytest.param(60, id="60s", marks=pytest.mark.long)]
)
def test_soak(batchplane: Commands, duration_s: float) -> None:
    """No uncounted loss, constant memory, exact counters throughout."""
    batchplane.good(
        "start", "l2l3", f"nexthops={NEXTHOPS}", "rate_pps=300000", "trigger=8", "age_limit=200us"
    )
    samples: list[tuple[float, int]] = []
    soak = Soak(batchplane, duration_s)
    watch = watch_memory(batchplane.pid("l2l3"), samples)
    soak.run(read_all, edit_routes, edit_triggers, look_around, watch)
    generators = batchplane.json("show", "generators")
    report = batchplane.stop("l2l3")
    balance = report["balance"]
    assert balance["held_pkts"] == 0
    assert balance["dropped_pkts"] == 0, report["drops"]
    assert balance["sent_pkts"] > 0
    # The ring between generator and worker loses nothing either: the worker got all that it took.
    assert balance["in_pkts"] >= generators[0]["sent_pkts"]
    assert balance["in_pkts"] == report["generators"][0]["sent_pkts"]
    # 100 a second on a quiet machine; on a busy one the number depends on other programs.
    for what in ("read_all", "edit_routes", "edit_triggers"):
        assert soak.counts[what] > 0, soak.counts
    # The first third fills caches and arenas; afterwards memory must not grow.
    settled = [kb for at_s, kb in samples if at_s > samples[0][0] + duration_s / 3]
    assert max(settled) - settled[0] < 4096, samples
