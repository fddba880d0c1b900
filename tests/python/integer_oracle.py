# SPDX-License-Identifier: BSD-3-Clause
"""integer_oracle.py - the program of docs/model.md with integer triggers, solved exactly as mixed-integer
programs (HiGHS, by branch and bound).

Written from the equations, not from the C++, for one task and without a spread of runs (`sigmas` 0). Every
batch size of a module is a yes or no, so load, turnaround, services and fills are linear in them.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

Program = dict[str, Any]
SAME = 1e-9  # relative difference of two rates
GAP = 1e-6  # relative, at which branch and bound ends


class NotSolved(Exception):
    """Branch and bound ran out of time, which says nothing about the program."""


@dataclass(frozen=True)
class Choice:
    """One trigger of a module: 0 executes what arrives."""

    module: int
    trigger_pkts: int
    pkt_ns: float  # of every packet that the task polls
    service_ns: float
    waits_for_pkts: float  # a packet, until the batch is full

    def path_ns(self, program: Program, pkt_ns: float) -> float:
        """Of a flow's delay; the task's packets take `pkt_ns` each."""
        share = program["modules"][self.module]["share"]
        return self.service_ns + program["fill_share"] * self.waits_for_pkts * pkt_ns / share


def choices_of(program: Program, v: int) -> list[Choice]:
    module = program["modules"][v]
    a, share = module["arriving_pkts"], module["share"]
    held = [q for q in range(1, int(module["max_pkts"]) + 1) if q > a]
    choices = []
    for q in [0, *held]:
        batch = q or a
        service_ns = module["cost_per_batch_ns"] + module["cost_per_pkt_ns"] * batch
        pkt_ns = share / batch * service_ns + (share * program["hold_ns"] if q else 0)
        choices.append(Choice(v, q, pkt_ns, service_ns, max(q - 1, a) if q else 0))
    return choices


@dataclass(frozen=True)
class Best:
    pkt_ns: float  # time per packet; its inverse is the highest rate
    triggers_pkts: list[int]


def least(program: Program, filled_pkt_ns: float, limit_s: float) -> Best | None:
    """The least time per packet with all budgets kept, if buffers fill at one packet per `filled_pkt_ns`;
    None if no triggers keep them."""
    (task,) = program["tasks"]
    choices = [c for v in range(len(program["modules"])) for c in choices_of(program, v)]
    cost = np.array([c.pkt_ns for c in choices])
    other_ns = task["other_run_ns"] / task["run_pkts"]
    run_pkts = task["runs_waited"] * task["run_pkts"]
    ones = sparse.csr_matrix(
        (np.ones(len(choices)), ([c.module for c in choices], range(len(choices))))
    )
    rows, rooms = [], []
    for flow in program["flows"]:
        path = set(flow["modules"])
        on_path = [c.path_ns(program, filled_pkt_ns) if c.module in path else 0.0 for c in choices]
        rows.append(run_pkts * cost + np.array(on_path))
        rooms.append(flow["budget_ns"] - run_pkts * other_ns)
    found = milp(
        cost,
        integrality=np.ones(len(choices)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(ones, 1, 1),
            LinearConstraint(np.array(rows), -np.inf, np.array(rooms)),
        ],
        options={"mip_rel_gap": GAP, "time_limit": limit_s},
    )
    if found.status == 1:
        raise NotSolved
    if found.x is None:
        return None
    taken = [c for c, x in zip(choices, found.x, strict=True) if x > 0.5]
    return Best(other_ns + sum(c.pkt_ns for c in taken), [c.trigger_pkts for c in taken])


def solve(program: Program, limit_s: float = math.inf) -> Best | None:
    """The exact optimum; no longer than `limit_s` for each integer program. Below saturation buffers fill at the offered rate. At saturation they fill at the
    rate that the triggers reach: each assumption that is too fast leads to a slower rate, never below the
    highest one, and the first that confirms itself is it."""
    (task,) = program["tasks"]
    if not task["is_saturated"]:
        return least(program, 1 / task["rate_pkts_per_ns"], limit_s)
    pkt_ns = 0.0
    while True:
        best = least(program, pkt_ns, limit_s)
        if best is None or best.pkt_ns <= pkt_ns * (1 + SAME):
            return best
        pkt_ns = best.pkt_ns


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return low * (high / low) ** rng.random()


def random_program(seed: int, n_modules: tuple[int, int], is_saturated: bool) -> Program:
    """Trees of modules, some behind others; a flow for each leaf, with a budget between those of few and of
    many packets held."""
    rng = random.Random(seed)
    n = rng.randint(*n_modules)
    parent = [rng.randrange(v) if v > 1 and rng.random() < 0.5 else None for v in range(n)]
    weights = [log_uniform(rng, 0.2, 1) for _ in range(n)]
    shares: list[float] = []
    for v in range(n):
        siblings = sum(w for w, p in zip(weights, parent, strict=True) if p == parent[v])
        above = parent[v]
        shares.append(weights[v] / siblings * (1 if above is None else shares[above]))
    modules = [
        {
            "task": 0,
            "cost_per_batch_ns": log_uniform(rng, 10, 1500),
            "cost_per_pkt_ns": log_uniform(rng, 2, 100),
            "share": share,
            "arriving_pkts": 1 + round(3 * rng.random(), 1),
            "sure_pkts": 1.0,
            "max_pkts": 32,
        }
        for share in shares
    ]
    task = {"is_saturated": is_saturated, "run_pkts": 32.0, "runs_waited": 3.0}
    task["other_run_ns"] = log_uniform(rng, 200, 2000)
    program: Program = {
        "hold_ns": 1.5, "fill_share": 1.0, "sigmas": 0.0,
        "tasks": [task], "modules": modules, "flows": [],
    }  # fmt: skip
    choices = [choices_of(program, v) for v in range(n)]
    other_ns = task["other_run_ns"] / task["run_pkts"]
    full_ns = other_ns + sum(min(c.pkt_ns for c in of) for of in choices)
    task["rate_pkts_per_ns"] = (1 if is_saturated else 0.3 + 0.6 * rng.random()) / full_ns
    for leaf in set(range(n)) - set(parent):
        path, v = [], leaf
        while v is not None:
            path.insert(0, v)
            v = parent[v]
        held = log_uniform(rng, 4, 32)
        delay_ns = 3 * task["run_pkts"] * full_ns * 1.6
        for v in path:
            batch = max(held, modules[v]["arriving_pkts"])
            delay_ns += modules[v]["cost_per_batch_ns"] + modules[v]["cost_per_pkt_ns"] * batch
            delay_ns += batch / shares[v] / task["rate_pkts_per_ns"]
        program["flows"].append({"modules": path, "tasks": [0], "budget_ns": delay_ns})
    return program
