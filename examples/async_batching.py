#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""async_batching.py - an asyncio server that batches requests to four models on one core, with a
promise of 80 ms for 95 % of them: how much of the core do different sizes of batches take?

usage: async_batching.py [--real] [--seconds N] [--seed N]

A batch of n costs 4 ms + 0.3 ms x n, and 600 requests come in a second. Time is virtual, so that
half a minute takes seconds; with --real it passes as it does.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import selectors
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from batchplane import Controller, Meter

MODELS = ("resnet", "bert", "whisper", "clip")
BATCH_MS, ITEM_MS = 4.0, 0.3
REQUESTS_PER_S = 600.0
SLO_MS, PERCENTILE = 80.0, 0.95
BATCH_LIMIT = 32
PERIOD_S = 2.0  # some hundred requests of each model
WARM_UP_S = 5.0  # not counted, of any policy
MODEL = {
    "batch_limit_pkts": BATCH_LIMIT,
    "modules": [
        {"name": name, "cost_per_batch_ns": BATCH_MS * 1e6, "cost_per_pkt_ns": ITEM_MS * 1e6}
        for name in MODELS
    ],
    "flows": [{"name": name, "path": [name], "slo_ns": SLO_MS * 1e6} for name in MODELS],
}
# At how many requests a batch may run, and how large it may be. `waiting` takes whatever is there;
# `optimal` does so, too, but from triggers on that the controller sets.
POLICIES = {
    "none": (1, 1),
    "full": (BATCH_LIMIT, BATCH_LIMIT),
    "waiting": (1, BATCH_LIMIT),
    "optimal": (1, BATCH_LIMIT),
}


@dataclass
class Request:
    """One that waits, and who waits for it."""

    item: Any
    came_ns: int
    answer: asyncio.Future[Any]


@dataclass
class Served:
    """What a policy came to, warm-up aside."""

    policy: str
    seconds: float
    busy_s: float = 0.0
    delays_ms: dict[str, list[float]] = field(default_factory=dict)

    @property
    def busy_share(self) -> float:
        """Of the core."""
        return self.busy_s / self.seconds

    def percentile_ms(self, name: str, percentile: float) -> float:
        """Of a model's requests."""
        delays_ms = sorted(self.delays_ms[name])
        return delays_ms[min(len(delays_ms) - 1, int(percentile * len(delays_ms)))]

    def late_share(self, name: str) -> float:
        """Of a model's requests."""
        delays_ms = self.delays_ms[name]
        return sum(delay_ms > SLO_MS for delay_ms in delays_ms) / len(delays_ms)

    def is_kept(self, name: str) -> bool:
        """Whether few enough of a model's requests were late."""
        return self.late_share(name) <= 1 - PERCENTILE


class Server:
    """A buffer in front of each model, and one executor that runs a batch at a time."""

    def __init__(self, policy: str, served: Served):
        self._loop = asyncio.get_running_loop()
        self._start_s = self._loop.time()
        self._queues: dict[str, deque[Request]] = {name: deque() for name in MODELS}
        self._has_news = asyncio.Event()
        trigger_pkts, self._most_pkts = POLICIES[policy]
        self._served = served
        self.controller = Controller(MODEL, {"percentile": PERCENTILE})
        self.meter = Meter(MODEL, self.now_ns(), PERCENTILE)
        self.buffers = self.controller.buffers
        for buffer in self.buffers.values():
            buffer["trigger_pkts"] = trigger_pkts

    def now_ns(self) -> int:
        """Since the start."""
        return round((self._loop.time() - self._start_s) * 1e9)

    def submit(self, name: str, item: Any) -> asyncio.Future[Any]:
        """Takes a request in; who awaits the future has the answer."""
        answer = self._loop.create_future()
        self._queues[name].append(Request(item, self.now_ns(), answer))
        self.meter.entered(name)
        self._has_news.set()
        return answer

    async def work(self) -> None:
        """The executor: of the models that are ready, the one whose request came first."""
        while True:
            name, cause, wait_s = self._next()
            if name:
                await self._run(name, cause)
                continue
            self._has_news.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._has_news.wait()
            except TimeoutError:
                pass  # a request has reached its age limit

    async def control(self) -> None:
        """Once a period: what was counted, and what follows from it."""
        while True:
            await asyncio.sleep(PERIOD_S)
            self.controller.step(self.meter.close(self.now_ns()))
            self._has_news.set()

    def _next(self) -> tuple[str, str, float | None]:
        """Which model is to run and why; if none, for how long none will be but for news."""
        now_ns = self.now_ns()
        ready: list[tuple[int, str, str]] = []
        limits_ns: list[int] = []
        for name, queue in self._queues.items():
            if not queue:
                continue
            came_ns, age_limit_ns = queue[0].came_ns, self.buffers[name]["age_limit_ns"]
            if len(queue) >= self.buffers[name]["trigger_pkts"]:
                ready.append((came_ns, name, "full"))
            elif age_limit_ns and now_ns >= came_ns + age_limit_ns:
                ready.append((came_ns, name, "age"))
            elif age_limit_ns:
                limits_ns.append(came_ns + age_limit_ns)
        if ready:
            _, name, cause = min(ready)
            return name, cause, None
        return "", "", (min(limits_ns) - now_ns) / 1e9 if limits_ns else None

    async def _run(self, name: str, cause: str) -> None:
        queue = self._queues[name]
        batch = [queue.popleft() for _ in range(min(self._most_pkts, len(queue)))]
        began_ns = self.now_ns()
        self.meter.began(name, len(batch), began_ns, cause)
        answers = await infer(name, [request.item for request in batch])
        ended_ns = self.now_ns()
        self.meter.ended(name, ended_ns)
        is_counted = began_ns >= WARM_UP_S * 1e9
        self._served.busy_s += (ended_ns - began_ns) / 1e9 if is_counted else 0
        for request, answer in zip(batch, answers, strict=True):
            delay_ns = ended_ns - request.came_ns
            self.meter.left(name, delay_ns)
            if is_counted:
                self._served.delays_ms.setdefault(name, []).append(delay_ns / 1e6)
            request.answer.set_result(answer)


async def infer(name: str, items: list[Any]) -> list[Any]:
    """Stands for the model."""
    await asyncio.sleep((BATCH_MS + ITEM_MS * len(items)) / 1e3)
    return [f"{name} of {item}" for item in items]


async def clients(server: Server, seconds: float, seed: int) -> None:
    """Requests that know nothing of each other."""
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()
    end_s = loop.time() + seconds
    next_s = loop.time()
    n_sent = 0
    while (next_s := next_s + chance.expovariate(REQUESTS_PER_S)) < end_s:
        await asyncio.sleep(max(0.0, next_s - loop.time()))
        server.submit(chance.choice(MODELS), n_sent)
        n_sent += 1


async def serve(policy: str, seconds: float, seed: int) -> Served:
    """One policy for so long after warming up."""
    served = Served(policy, seconds)
    server = Server(policy, served)
    tasks = [asyncio.create_task(server.work())]
    if policy == "optimal":
        tasks.append(asyncio.create_task(server.control()))
    await clients(server, WARM_UP_S + seconds, seed)
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(outcome, asyncio.CancelledError):
            raise outcome
    return served


class JumpingSelector(selectors.SelectSelector):
    """Where a loop would wait, time jumps there."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """What is there, without waiting."""
        self.now_s += max(0.0, timeout or 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is moved by what it waits for."""

    def __init__(self) -> None:
        self._clock = JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        """In seconds since the loop was made."""
        return self._clock.now_s


def run(policy: str, seconds: float = 30, seed: int = 1, is_real: bool = False) -> Served:
    """One policy, in an event loop of its own."""
    with asyncio.Runner(loop_factory=None if is_real else VirtualLoop) as runner:
        return runner.run(serve(policy, seconds, seed))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--real", action="store_true", help="in real time")
    parser.add_argument("--seconds", type=float, default=30, help="for each policy")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.seconds < 1:
        parser.error("--seconds: 1 or more")
    names = "  ".join(f"{name + ' p50/p95':>16}" for name in MODELS)
    print(f"{'policy':8} {'busy':>5}  {names}  {'late':>6}  SLO")
    for policy in POLICIES:
        served = run(policy, options.seconds, options.seed, options.real)
        delays = "  ".join(
            f"{served.percentile_ms(name, 0.5):7.0f}/{served.percentile_ms(name, 0.95):5.0f} ms"
            for name in MODELS
        )
        late = max(served.late_share(name) for name in MODELS)
        kept = "kept" if all(served.is_kept(name) for name in MODELS) else "missed"
        print(f"{policy:8} {served.busy_share:5.0%}  {delays}  {late:6.2%}  {kept}")


if __name__ == "__main__":
    main()
