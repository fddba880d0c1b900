# SPDX-License-Identifier: BSD-3-Clause
"""random_tasks.py - pipelines of two to four tasks, each on its own worker, and the best fixed
triggers and ring credits for them.

A front task hands packets to one or more tasks behind rings, each of which splits them over
branches of network functions. The seed determines everything.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from random_pipelines import BATCH_PKTS, LOOP, RandomPipeline

from batchplane.base.promise import DEFAULT_PERCENTILE, is_slo_broken
from batchplane.native.loader import make_simulation

PERIOD_NS = 1_000_000
SETTLE, COUNTED = 60, 40  # periods
TRIGGERS = (0, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32)
CREDITS = (32, 48, 64, 128)
HOP_NS = 9.0
RING_PKTS = 1024
Choice = Mapping[int, int]  # trigger by task


def random_tasks(seed: int, branches: int = 0) -> dict[str, Any]:
    """A simulator input without SLOs; its generator keeps the ring full. `branches`: behind each
    splitter; 0 means a few."""
    rng = random.Random(seed)
    made = RandomPipeline(rng)
    made.modules["in"] = {"kind": "port_in", "params": {"port": "link"}, "worker": "w0"}
    made.costs["in"] = {"cost_per_batch_ns": 5.0, "cost_per_pkt_ns": 8.0}
    n_behind = rng.choice((1, 1, 2, 3))
    path = ["in", *made.chain("in", 0, rng.choice((1, 1, 2)))]
    workers = [{"name": f"w{w}"} for w in range(n_behind + 1)]
    gates: dict[str, Any] = {}
    splitter = ""
    if n_behind > 1 and rng.random() < 0.7:
        splitter = made.add("l2_table")
        made.connect(path[-1], splitter)
        path = [*path, splitter]
    for w in range(1, n_behind + 1):
        ring = f"ring_{w}"
        made.modules[ring] = {
            "kind": "queue", "worker": f"w{w}",
            "params": {"size_pkts": RING_PKTS, "backpressure": True},
        }  # fmt: skip
        made.costs[ring] = {"cost_per_batch_ns": 1.0, "cost_per_pkt_ns": HOP_NS}
        made.connect(path[-1], ring, w - 1 if splitter else 0)
        here = dict(gates)
        if splitter:
            here[splitter] = w - 1
        head = [*path, ring, *made.chain(ring, 0, rng.choice((0, 1)))]
        if not splitter and w < n_behind:
            path = [*head, *(made.chain(head[-1], 0, 1) if head[-1] == ring else [])]
            continue
        _branches(made, head, here, branches)
    return {
        "version": 1,
        "name": f"tasks_{seed}",
        "engine": {"batch_pkts": BATCH_PKTS, "idle": "hold"},
        "ports": {"link": {"kind": "ring", "params": {"size_pkts": 64}}},
        "workers": workers,
        "generators": [
            {
                "name": "load", "port": "link",
                "params": {
                    "saturate": True, "seed": seed, "order": rng.choice(("round_robin", "random")),
                },
            }
        ],
        "modules": made.modules,
        "edges": made.edges,
        "flows": made.flows,
        "simulation": {
            "loop": dict(LOOP), "costs": made.costs, "routes": {"load": made.routes}, "seed": seed,
            "overflow": "drop",
        },
    }  # fmt: skip


def _branches(made: RandomPipeline, head: list[str], gates: dict[str, Any], branches: int) -> None:
    splitter = made.add("exact_match")
    made.connect(head[-1], splitter)
    for branch in range(branches or made.rng.choice((2, 3, 4, 6, 8))):
        chain = made.chain(splitter, branch, made.rng.randint(1, 3))
        sink = made.add("sink")
        made.connect(chain[-1], sink)
        name = f"flow_{len(made.flows)}"
        made.flows.append({"name": name, "path": [*head, splitter, *chain, sink]})
        made.routes.append({"name": name, "gates": {**gates, splitter: branch}})


@dataclass(frozen=True)
class Found:
    """The rate of a run, and how late it was."""

    rate_pps: float
    delays_ns: tuple[int, ...]  # p95 of each flow
    broken: tuple[bool, ...] = ()  # by period: any flow was late
    settling: tuple[bool, ...] = ()  # the same of the periods before

    @property
    def violated(self) -> float:
        """The share of periods in which any flow was late."""
        return sum(self.broken) / max(1, len(self.broken))


def _measured(periods: Iterable[Mapping[str, Any]]) -> Found:
    """Sums over these periods, and the worst delay of each flow."""
    pkts, ns = 0, 0
    worst: list[int] = []
    broken: list[bool] = []
    for period in periods:
        flows = period["flows"]
        pkts += int(sum(flows["pkts"]))
        ns += int(period["period_ns"])
        delays = [int(d) for d in flows["delay_ns"]]
        worst = [max(a, b) for a, b in zip(worst or delays, delays, strict=True)]
        broken.append(bool(is_slo_broken(flows, DEFAULT_PERCENTILE).any()))
    return Found(pkts * 1e9 / max(1, ns), tuple(worst), tuple(broken))


def _periods(sim: Any, n: int, is_controlled: bool) -> Iterator[Mapping[str, Any]]:
    for _ in range(n):
        sim.run_until(int(sim.now_ns) + PERIOD_NS)
        yield sim.step()[0] if is_controlled else sim.period()


def with_slo(spec: dict[str, Any], slo_ns: int) -> dict[str, Any]:
    flows = [{**flow, "delay_slo_ns": slo_ns} for flow in spec["flows"]]
    return {**spec, "flows": flows} if slo_ns else spec


def run_fixed(
    spec: dict[str, Any], choice: Choice, credit_pkts: int, settle: int = 4, periods: int = 8
) -> Found:
    """A run with these triggers in front of all modules that may hold, and that credit for every
    ring."""
    sim = make_simulation(spec)
    model = sim.model()
    sim.apply(
        {
            "changes": [
                {"module": m, "trigger_pkts": choice[row["task"]]}
                for m, row in enumerate(model["modules"])
                if row["is_controlled"] and row["task"] in choice
            ],
            "credits": [
                {"module": row["module"], "credit_pkts": credit_pkts}
                for row in model["inputs"]
                if row["is_queue"]
            ],
        }
    )
    for _ in _periods(sim, settle, False):
        pass
    return _measured(_periods(sim, periods, False))


def run_controlled(
    spec: dict[str, Any], controller: str, slo_ns: int, settle: int = SETTLE, periods: int = COUNTED
) -> Found:
    """A run under a controller, once it has settled."""
    sim = make_simulation(with_slo(spec, slo_ns))
    sim.set_controller(controller, {})
    settling = _measured(_periods(sim, settle, True))
    return replace(_measured(_periods(sim, periods, True)), settling=settling.broken)


def slo_of(spec: dict[str, Any], share: float) -> int:
    """A share of the highest p95 with full batches and rings of 64 packets."""
    tasks = range(len(make_simulation(spec).model()["tasks"]))
    return int(share * max(run_fixed(spec, dict.fromkeys(tasks, BATCH_PKTS), 64).delays_ns))


def slo_share(seed: int) -> float:
    """How much of that a pipeline gets."""
    return random.Random(seed + 1000).uniform(0.5, 1.0)


def best_fixed(spec: dict[str, Any], slo_ns: int) -> tuple[float, Choice, int]:
    """The highest rate of fixed triggers, one per task, and one credit, at which every flow's p95
    is within the SLO; 0 if none meets it."""
    tasks = range(len(make_simulation(spec).model()["tasks"]))
    best: tuple[float, Choice, int] = (0.0, {}, 0)
    seen: dict[tuple[tuple[int, ...], int], float] = {}

    def rate_of(choice: Choice, credit: int) -> float:
        key = (tuple(choice[t] for t in tasks), credit)
        if key not in seen:
            found = run_fixed(spec, choice, credit)
            seen[key] = found.rate_pps if max(found.delays_ns) <= slo_ns else 0.0
        return seen[key]

    for choice, credit in _grid(tasks):
        rate = rate_of(choice, credit)
        if rate > best[0]:
            best = (rate, choice, credit)
    improves = best[0] > 0
    while improves:
        improves = False
        for task in tasks:
            for trigger in TRIGGERS:
                choice = {**best[1], task: trigger}
                rate = rate_of(choice, best[2])
                if rate > best[0] * 1.001:
                    best = (rate, choice, best[2])
                    improves = True
    return best


def _grid(tasks: Sequence[int] | range) -> Iterator[tuple[Choice, int]]:
    """The front with and without holding, and one trigger for all tasks behind it."""
    for credit in CREDITS:
        for front in (0, BATCH_PKTS):
            for behind in TRIGGERS:
                yield {t: front if t == 0 else behind for t in tasks}, credit
