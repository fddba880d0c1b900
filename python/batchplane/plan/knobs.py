# SPDX-License-Identifier: BSD-3-Clause
"""knobs.py - makes a pipeline from what matters most to batching, if nothing else is known:
branches, batchiness and burstiness.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ..base.problems import BadInput, Problem
from ..costs.costs import PRIOR, load_costs, resolve
from ..lang.canonical import Document
from ..sim.prepare import Inputs, duration_ns
from ..sim.spec import Machine, build_spec, with_profiled_loop

DEFAULT_BATCHINESS = 0.3  # the papers' network functions have about 0.2 to 0.3
DEFAULT_WORK_NS = 500
_TRACE_PKTS = 1 << 15
_SPACING_NS = 100  # any value: a plan depends only on the order of packets


@dataclass(frozen=True)
class Knobs:
    """The options of the command line; None: not given."""

    branches: int | None = None
    batchiness: float | None = None
    burst: float | None = None
    work: str | None = None

    @property
    def is_given(self) -> bool:
        """Whether the options describe a pipeline."""
        return self.branches is not None

    def check(self, pipeline: str | None) -> None:
        """Raises BadInput unless the options describe a pipeline, or none is given."""
        others = {"--batchiness": self.batchiness, "--burst": self.burst, "--work": self.work}
        given = [option for option, value in others.items() if value is not None]
        if self.is_given and pipeline is not None:
            raise BadInput(
                Problem(
                    f"'{pipeline}' and --branches: which of them is to be planned?",
                    "command line", "--branches", "give a pipeline or --branches",
                )
            )  # fmt: skip
        if not self.is_given and pipeline is None:
            raise BadInput(
                Problem(
                    "nothing to plan", "command line",
                    fix="plan PIPELINE --slo 100us, or plan --branches 16 --slo 100us",
                )
            )  # fmt: skip
        if given and not self.is_given:
            raise BadInput(
                Problem(
                    "it describes a pipeline that is not there",
                    "command line", given[0], "add --branches N, and name no pipeline",
                )
            )  # fmt: skip


def knob_inputs(knobs: Knobs) -> tuple[Inputs, dict[str, Any]]:
    """The pipeline, and the assumptions in words. Raises BadInput."""
    branches = knobs.branches or 1
    batchiness = DEFAULT_BATCHINESS if knobs.batchiness is None else knobs.batchiness
    burst = 1.0 if knobs.burst is None else knobs.burst
    work_ns = DEFAULT_WORK_NS if knobs.work is None else duration_ns(knobs.work, "--work")
    document = Document(_pipeline(branches, batchiness, work_ns), file="--branches")
    found = resolve(document.pipeline, load_costs(PRIOR))
    costs = {name: law.as_json() for name, law in found.modules.items()}
    routes = {
        "load": [
            {"name": f"flow_{i}", "gates": {"split": i} if branches > 1 else {}}
            for i in range(branches)
        ]
    }
    flows = train_of_flows(branches, burst)
    trace = {
        "time_ns": [i * _SPACING_NS for i in range(len(flows))],
        "flow": flows,
        "size_bytes": [64] * len(flows),
    }
    machine = with_profiled_loop(Machine(), found.loop)
    spec = build_spec(document, costs, routes, machine, {"load": trace})
    assumed = {
        "branches": branches,
        "batchiness": batchiness,
        "burst_pkts": burst,
        "work_ns": work_ns,
        "is_work_given": knobs.work is not None,
    }
    return Inputs(document, spec, origin="built-in costs of the engine"), assumed


def train_of_flows(n_flows: int, burst_pkts: float, n_pkts: int = _TRACE_PKTS) -> list[int]:
    """The flow of each packet: runs of one flow have mean length `burst_pkts`, and a different flow
    follows each run. All flows are equally likely. Deterministic.
    """
    rng = random.Random(n_flows)
    if n_flows == 1:
        return [0] * n_pkts
    flow, flows = 0, []
    for _ in range(n_pkts):
        if rng.random() < 1 / burst_pkts:
            flow = (flow + 1 + rng.randrange(n_flows - 1)) % n_flows
        flows.append(flow)
    return flows


def _pipeline(branches: int, batchiness: float, work_ns: int) -> dict[str, Any]:
    modules: dict[str, Any] = {"in": {"kind": "port_in", "params": {"port": "link"}}}
    edges = []
    flows = []
    if branches > 1:
        modules["split"] = {"kind": "l2_table", "params": {"entries": []}}
        edges.append({"from": "in", "gate": 0, "to": "split"})
    first = "split" if branches > 1 else "in"
    params = {
        "cost_per_batch_ns": round(work_ns * (1 - batchiness)),
        "cost_per_pkt_ns": round(work_ns * batchiness),
    }
    for i in range(branches):
        modules[f"branch_{i}"] = {"kind": "cost", "params": params}
        modules[f"out_{i}"] = {"kind": "sink", "params": {}}
        edges.append({"from": first, "gate": i, "to": f"branch_{i}"})
        edges.append({"from": f"branch_{i}", "gate": 0, "to": f"out_{i}"})
        path = [name for name in ("in", "split") if name in modules]
        flows.append({"name": f"flow_{i}", "path": [*path, f"branch_{i}", f"out_{i}"]})
    return {
        "version": 1,
        "name": "one branch" if branches == 1 else f"{branches} branches",
        "engine": {"idle": "hold"},
        "ports": {"link": {"kind": "ring", "params": {"size_pkts": 64}}},
        "generators": [{"name": "load", "port": "link", "params": {"flows": flows_of(branches)}}],
        "modules": modules,
        "edges": edges,
        "flows": flows,
    }


def flows_of(n: int) -> list[dict[str, Any]]:
    """The generator's traffic flows: one for each branch."""
    return [{"name": f"flow_{i}"} for i in range(n)]
