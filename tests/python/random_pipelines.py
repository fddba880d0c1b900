# SPDX-License-Identifier: BSD-3-Clause
"""random_pipelines.py - random pipelines of every shape that a plan must handle, as simulator
inputs.

A tree of splitters over chains of cost modules; branches may join again; traffic in turn, at random
or in trains, equal or skewed. The seed determines everything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

BATCH_PKTS = 32
# The engine's own costs; half of the pipelines have them, the others none.
LOOP = {
    "poll_per_batch_ns": 26.0, "empty_poll_ns": 28.0, "poll_per_pkt_ns": 2.3, "firing_ns": 6.6,
    "buffered_per_pkt_ns": 1.5, "scatter_per_branch_ns": 2.6, "scatter_per_pkt_ns": 2.0,
    "ring_take_per_pkt_ns": 0.8, "egress_per_pkt_ns": 3.5, "far_per_batch_ns": 100.0,
    "far_per_pkt_ns": 15.0, "clock_read_ns": 8.7,
}  # fmt: skip


@dataclass
class RandomPipeline:
    """The parts of a pipeline while it is built."""

    rng: random.Random
    modules: dict[str, Any] = field(default_factory=dict)
    edges: list[dict[str, Any]] = field(default_factory=list)
    costs: dict[str, Any] = field(default_factory=dict)
    routes: list[dict[str, Any]] = field(default_factory=list)
    flows: list[dict[str, Any]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, kind: str) -> str:
        """Adds a module; network functions mostly have a high cost per batch, less often per
        packet."""
        name = f"{kind}_{len(self.modules)}"
        self.modules[name] = {"kind": kind, "params": {}}
        work_ns = 30 * 40 ** self.rng.random() if kind == "cost" else 10
        batchiness = self.rng.choice((0.02, 0.05, 0.1, 0.2, 0.4, 0.7))
        self.costs[name] = {
            "cost_per_batch_ns": work_ns * (1 - batchiness),
            "cost_per_pkt_ns": work_ns * batchiness,
        }
        return name

    def connect(self, from_: str, to: str, gate: int = 0) -> None:
        """An edge."""
        self.edges.append({"from": from_, "gate": gate, "to": to})

    def chain(self, from_: str, gate: int, n: int) -> list[str]:
        """That many modules in a row."""
        names = []
        for _ in range(n):
            name = self.add("cost")
            self.connect(from_, name, gate)
            names.append(name)
            from_, gate = name, 0
        return names


def _end(made: RandomPipeline, path: list[str], gates: dict[str, Any], tail: list[str]) -> None:
    """Ends a flow at its branch's own end, or through modules that branches share."""
    if tail:
        made.connect(path[-1], tail[0])
        path = [*path, *tail]
    else:
        sink = made.add("sink")
        made.connect(path[-1], sink)
        path = [*path, sink]
    flow = len(made.flows)
    made.flows.append({"name": f"flow_{flow}", "path": path})
    made.routes.append({"name": f"flow_{flow}", "gates": gates})


def _leaf(made: RandomPipeline, path: list[str], gates: dict[str, Any], tail: list[str]) -> None:
    rng = made.rng
    gate = next(reversed(gates.values())) if gates else 0
    path = [*path, *made.chain(path[-1], gate, rng.randint(1, 3))]
    if rng.random() < 0.15:
        splitter = made.add("exact_match")
        made.connect(path[-1], splitter)
        for branch in range(rng.randint(2, 4)):
            more = made.chain(splitter, branch, rng.randint(1, 2))
            _end(made, [*path, splitter, *more], {**gates, splitter: branch}, tail)
    else:
        _end(made, path, gates, tail)


def random_pipeline(seed: int) -> dict[str, Any]:
    """A simulator's input without SLOs; its generator keeps the ring full."""
    rng = random.Random(seed)
    made = RandomPipeline(rng)
    made.modules["in"] = {"kind": "port_in", "params": {"port": "link"}}
    made.costs["in"] = {"cost_per_batch_ns": 5.0, "cost_per_pkt_ns": 8.0}
    path = ["in", *made.chain("in", 0, rng.choice((0, 0, 0, 1, 2)))]
    splitter = made.add("l2_table")
    made.connect(path[-1], splitter)
    tail: list[str] = []
    if rng.random() < 0.3:
        tail = [made.add("cost"), made.add("sink")]
        made.connect(tail[0], tail[1])
    for branch in range(rng.choice((2, 3, 4, 6, 8, 12, 16, 24, 32))):
        _leaf(made, [*path, splitter], {splitter: branch}, tail if rng.random() < 0.7 else [])
    skew = rng.choice((0.0, 0.0, 0.5, 1.0))
    for i, route in enumerate(made.routes):
        route["weight"] = round((i + 1) ** -skew, 3)
    burst_pkts = rng.choice((1, 1, 1, 2, 4))
    params: dict[str, Any] = {"order": rng.choice(("round_robin", "random")), "seed": seed}
    if burst_pkts == 1:
        params["saturate"] = True
    else:
        params.update(burst_pkts=burst_pkts, rate_pps=200e6)
    loop = dict(LOOP) if rng.random() < 0.5 else {"empty_poll_ns": 30.0}
    return {
        "version": 1,
        "name": f"random_{seed}",
        "engine": {"batch_pkts": BATCH_PKTS, "idle": "hold"},
        "ports": {"link": {"kind": "ring", "params": {"size_pkts": 64}}},
        "generators": [{"name": "load", "port": "link", "params": params}],
        "modules": made.modules,
        "edges": made.edges,
        "flows": made.flows,
        "simulation": {
            "loop": loop, "costs": made.costs, "routes": {"load": made.routes}, "seed": seed,
            "overflow": "drop",
        },
    }  # fmt: skip
