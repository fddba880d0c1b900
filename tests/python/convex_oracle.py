# SPDX-License-Identifier: BSD-3-Clause
"""convex_oracle.py - the program of docs/model.md, solved by an interior-point method.

Written from the equations, not from the C++. In logarithms of batch sizes, load, variance and
delays are sums of exponentials, which Clarabel takes as exponential cones. `held` says which
modules may collect; the others execute packets as they arrive. The resulting problem is convex, so
that a solution is the optimum, unless `NotConvex` is raised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

Program = dict[str, Any]
INFINITE = math.inf


class NotConvex(Exception):
    """Shorter fills at a higher rate outweigh turnaround: not a sum of exponentials."""


class NotSolved(Exception):
    """The interior-point method gave up, which says nothing about the program."""


@dataclass(frozen=True)
class Best:
    """The least load, the batch sizes there, and what a ns of each flow's budget would save."""

    load: float
    batches_pkts: list[float]
    prices: list[float]


def holdable(program: Program) -> list[int]:
    """The modules that can gain by collecting."""
    return [
        v
        for v, module in enumerate(program["modules"])
        if module["share"] > 0
        and module["max_pkts"] > module["arriving_pkts"]
        and module["cost_per_batch_ns"]
        * (1 / module["arriving_pkts"] - 1 / max(1, module["max_pkts"]))
        > program["hold_ns"]
    ]


def model(program: Program, batches: list[float], held: set[int]) -> dict[str, list[float]]:
    """Equations (1) to (4): time per packet and turnaround by task, delay by flow."""
    pkt_ns = [task["other_run_ns"] / task["run_pkts"] for task in program["tasks"]]
    variance = [0.0] * len(pkt_ns)
    for v, module in enumerate(program["modules"]):
        b, t = batches[v], module["task"]
        once_ns = module["cost_per_batch_ns"] + module["cost_per_pkt_ns"] * b
        pkt_ns[t] += module["share"] * (once_ns / b + (program["hold_ns"] if v in held else 0))
        variance[t] += module["share"] / b * once_ns**2
    turnaround_ns = []
    spreads_ns = []
    for t, task in enumerate(program["tasks"]):
        pkts = task["runs_waited"] * task["run_pkts"]
        spreads_ns.append(task.get("spread_scale", 1) * math.sqrt(pkts * variance[t]))
        turnaround_ns.append(pkts * pkt_ns[t] + program["sigmas"] * spreads_ns[t])
    delay_ns = []
    for flow in program["flows"]:
        waiting_ns = sum(turnaround_ns[t] for t in flow["tasks"])
        if held & set(flow["modules"]):
            waiting_ns = max(waiting_ns, flow.get("least_turnaround_ns", 0))
        fills: list[tuple[float, float]] = []
        for v in flow["modules"]:
            module = program["modules"][v]
            task = program["tasks"][module["task"]]
            rate = 1 / pkt_ns[module["task"]] if task["is_saturated"] else task["rate_pkts_per_ns"]
            if v in held:
                # A cut batch waits for the next one, however few packets are missing.
                arriving, sure = module["arriving_pkts"], module.get("sure_pkts", 0)
                more = max(batches[v] - sure, arriving) if sure else batches[v] - arriving
                fill_ns = program["fill_share"] * more / (module["share"] * rate)
                fills.append((fill_ns, batches[v]))
            waiting_ns += module["cost_per_batch_ns"] + module["cost_per_pkt_ns"] * batches[v]
        is_mixed = program.get("mixes_fills", False) and all(
            program["tasks"][t]["is_saturated"] for t in flow["tasks"]
        )
        spread_ns = sum(spreads_ns[t] for t in flow["tasks"])
        delay_ns.append(waiting_ns + _filling_ns(fills, spread_ns, program["sigmas"], is_mixed))
    return {"pkt_ns": pkt_ns, "turnaround_ns": turnaround_ns, "delay_ns": delay_ns}


def _filling_ns(
    fills: list[tuple[float, float]], spread_ns: float, sigmas: float, is_mixed: bool
) -> float:
    """The fills' part of a percentile: their sum, or less if a packet's position is random."""
    all_ns = sum(fill_ns for fill_ns, _ in fills)
    if not is_mixed:
        return all_ns
    variance = spread_ns**2 + sum(fill**2 * (1 / 12 + 1 / (2 * q)) for fill, q in fills)
    return min(all_ns, all_ns / 2 + sigmas * (math.sqrt(variance) - spread_ns))


class _Cones:
    """The rows of an exponential-cone program over columns that are added on demand."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.cost: dict[int, float] = {}
        self._linear: list[tuple[dict[int, float], float]] = []  # sum <= bound
        self._exponentials: list[tuple[dict[int, float], float, int]] = []  # exp(..) <= column

    def at_most(self, row: dict[int, float], bound: float) -> int:
        self._linear.append((row, bound))
        return len(self._linear) - 1

    def exponential(self, powers: dict[int, float], factor: float) -> int:
        """A column that is at least factor * exp(sum of powers)."""
        column = self.columns
        self.columns += 1
        self._exponentials.append((powers, math.log(factor), column))
        return column

    def solve(self) -> tuple[str, list[float], list[float]]:
        entries: list[tuple[int, int, float]] = []
        bounds = []
        for row, bound in self._linear:
            entries += [(len(bounds), column, value) for column, value in row.items()]
            bounds.append(bound)
        for powers, log_factor, column in self._exponentials:
            entries += [(len(bounds), c, -value) for c, value in powers.items()]
            entries.append((len(bounds) + 2, column, -1.0))
            bounds += [log_factor, 1.0, 0.0]
        cost = np.zeros(self.columns)
        for column, value in self.cost.items():
            cost[column] = value
        rows, columns, values = zip(*entries, strict=True)
        matrix = sparse.csc_matrix((values, (rows, columns)), shape=(len(bounds), self.columns))
        cones: list[Any] = [clarabel.NonnegativeConeT(len(self._linear))]
        cones += [clarabel.ExponentialConeT()] * len(self._exponentials)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        empty = sparse.csc_matrix((self.columns, self.columns))
        found = clarabel.DefaultSolver(
            empty, cost, matrix, np.array(bounds), cones, settings
        ).solve()
        return str(found.status), list(found.x), list(found.z)


def _add_tasks(
    cones: _Cones, program: Program, held: set[int], pkt_log: list[int], spread_log: list[int]
) -> None:
    """C_t <= exp(pkt_log), and the standard deviation of K runs <= exp(spread_log)."""
    for t, task in enumerate(program["tasks"]):
        fixed_ns = task["other_run_ns"] / task["run_pkts"]
        pkts = task["runs_waited"] * task["run_pkts"]
        pkt_row: dict[int, float] = {}
        spread_row: dict[int, float] = {}
        for v, module in enumerate(program["modules"]):
            if module["task"] != t or module["share"] <= 0:
                continue
            batch_ns, each_ns = module["cost_per_batch_ns"], module["cost_per_pkt_ns"]
            share = module["share"]
            fixed_ns += share * (each_ns + (program["hold_ns"] if v in held else 0))
            if batch_ns > 0:
                column = cones.exponential({v: -1, pkt_log[t]: -1}, share * batch_ns)
                pkt_row[column] = 1
            # (A + M b)^2 / b = A^2 / b + 2 A M + M^2 b
            for power, factor in ((-1, batch_ns**2), (0, 2 * batch_ns * each_ns), (1, each_ns**2)):
                if factor <= 0:
                    continue
                powers = {spread_log[t]: -2.0} | ({v: float(power)} if power else {})
                spread_row[cones.exponential(powers, pkts * share * factor)] = 1
        pkt_row[cones.exponential({pkt_log[t]: -1}, fixed_ns)] = 1
        cones.at_most(pkt_row, 1)
        cones.at_most(spread_row, 1)


def _add_flow(
    cones: _Cones,
    program: Program,
    f: int,
    held: set[int],
    pkt_log: list[int],
    spread_log: list[int],
) -> list[int]:
    """The budget of flow f; the numbers of its rows, divided by the budget."""
    flow = program["flows"][f]
    row: dict[int, float] = {}
    scale = flow["budget_ns"]  # all terms are relative to it, so that columns are near one
    room_ns = flow["budget_ns"]
    turnaround: dict[int, float] = {}
    per_pkt_ns = dict.fromkeys(flow["tasks"], 0.0)  # factor of C_t
    waits = {
        t: program["tasks"][t]["runs_waited"] * program["tasks"][t]["run_pkts"]
        for t in flow["tasks"]
    }
    for t in flow["tasks"]:
        if program["sigmas"] > 0:
            turnaround[cones.exponential({spread_log[t]: 1}, program["sigmas"] / scale)] = 1
    for v in flow["modules"]:
        module = program["modules"][v]
        t = module["task"]
        task = program["tasks"][t]
        a = module["arriving_pkts"]
        room_ns -= module["cost_per_batch_ns"]
        if module["cost_per_pkt_ns"] > 0:
            row[cones.exponential({v: 1}, module["cost_per_pkt_ns"] / scale)] = 1
        if v not in held:
            continue
        sure = module.get("sure_pkts", 0) or a
        if task["is_saturated"]:
            factor = program["fill_share"] / module["share"]
            row[cones.exponential({v: 1, pkt_log[t]: 1}, factor / scale)] = 1
            per_pkt_ns[t] -= factor * sure
        else:
            factor = program["fill_share"] / (module["share"] * task["rate_pkts_per_ns"])
            row[cones.exponential({v: 1}, factor / scale)] = 1
            room_ns += factor * sure
    rows = []
    for least_ns in (None, flow.get("least_turnaround_ns", 0)):
        if least_ns is not None and not (held & set(flow["modules"]) and least_ns > 0):
            continue
        whole = dict(row)
        room = room_ns
        if least_ns is None:
            whole |= turnaround
        else:
            room -= least_ns
        for t in flow["tasks"]:
            factor = per_pkt_ns[t] + (waits[t] if least_ns is None else 0)
            if factor < 0:
                raise NotConvex
            if factor > 0:
                whole[cones.exponential({pkt_log[t]: 1}, factor / scale)] = 1
        rows.append(cones.at_most(whole, room / scale))
    return rows


def solve(program: Program, held: set[int] | None = None) -> Best | None:
    """The best batch sizes if `held` may collect (default: all that gain by it); None if
    infeasible."""
    held = set(holdable(program)) if held is None else held
    n = len(program["modules"])
    n_tasks = len(program["tasks"])
    pkt_log = list(range(n, n + n_tasks))
    spread_log = list(range(n + n_tasks, n + 2 * n_tasks))
    cones = _Cones(n + 2 * n_tasks)
    for v, module in enumerate(program["modules"]):
        low = math.log(module["arriving_pkts"])
        cones.at_most({v: -1}, -low)
        cones.at_most({v: 1}, math.log(module["max_pkts"]) if v in held else low)
    _add_tasks(cones, program, held, pkt_log, spread_log)
    rows = [
        _add_flow(cones, program, f, held, pkt_log, spread_log)
        if flow["budget_ns"] < INFINITE
        else []
        for f, flow in enumerate(program["flows"])
    ]
    start = model(program, [m["arriving_pkts"] for m in program["modules"]], set())
    scale = sum(
        c * task["rate_pkts_per_ns"]
        for c, task in zip(start["pkt_ns"], program["tasks"], strict=True)
    )
    for t, task in enumerate(program["tasks"]):
        cones.cost[cones.exponential({pkt_log[t]: 1}, task["rate_pkts_per_ns"] / scale)] = 1
    status, x, z = cones.solve()
    if "Infeasible" in status:
        return None
    if status != "Solved":
        raise NotSolved(status)
    batches = [math.exp(value) for value in x[:n]]
    at = model(program, batches, held)
    load = sum(
        c * task["rate_pkts_per_ns"] for c, task in zip(at["pkt_ns"], program["tasks"], strict=True)
    )
    prices = [
        sum(z[r] for r in of_flow) * scale / flow["budget_ns"]
        for of_flow, flow in zip(rows, program["flows"], strict=True)
    ]
    return Best(load, batches, prices)
