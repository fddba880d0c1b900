# SPDX-License-Identifier: BSD-3-Clause
"""The solver of src/slo/program*.cc compared with an interior-point method, on random programs.

If holding is free (hold_ns = 0) and arriving batches are never cut, the relaxed problem has one
optimum, which `convex_oracle` finds in another way: objective, feasibility and prices must agree.
Integer triggers can only be worse, and only slightly.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import convex_oracle
import pytest

from batchplane.native.loader import extension_path, load_native

pytestmark = pytest.mark.skipif(
    extension_path() is None, reason="NOT RUN: tools/build.sh run native has not been run"
)

SETTLED = 1e-6  # relative change of a trigger at which our solver stops; in the daemon 5e-3
MANY_RELAXATIONS = 1000  # our solver ends there, converged or not
OBJECTIVE = 1e-4  # relative
FEW, MANY = 300, 2500  # programs of each kind


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return low * (high / low) ** rng.random()


def random_program(seed: int, is_saturated: bool, max_tasks: int) -> dict[str, Any]:
    """1 to 8 modules, 1 to 6 flows; budgets range from infeasible to loose."""
    rng = random.Random(seed)
    n, n_tasks = rng.randint(1, 8), rng.randint(1, max_tasks)
    most = rng.choice([8, 16, 32])
    modules = [
        {
            "task": v if v < n_tasks else rng.randrange(n_tasks),
            "cost_per_batch_ns": log_uniform(rng, 10, 4000),
            "cost_per_pkt_ns": log_uniform(rng, 1, 200),
            "share": 0.05 + 0.95 * rng.random(),
            "arriving_pkts": 1 + math.floor(30 * rng.random()) / 10,
            "max_pkts": most,
        }
        for v in range(max(n, n_tasks))
    ]
    tasks = []
    for t in range(n_tasks):
        run_pkts = float(most) if is_saturated else 1 + (most - 1) * rng.random()
        other_ns = log_uniform(rng, 20, 1000)
        work_ns = other_ns / run_pkts + sum(
            m["share"] * (m["cost_per_batch_ns"] / (most / 2) + m["cost_per_pkt_ns"])
            for m in modules
            if m["task"] == t
        )
        tasks.append(
            {
                "is_saturated": is_saturated,
                "run_pkts": run_pkts,
                "other_run_ns": other_ns,
                "runs_waited": 3.0 if is_saturated else 2.0,
                "rate_pkts_per_ns": (1 if is_saturated else 0.1 + 0.8 * rng.random()) / work_ns,
            }
        )
    program: dict[str, Any] = {
        "hold_ns": 0.0, "fill_share": rng.choice([1.0, 0.5]),
        "sigmas": rng.choice([0, 1.645, 2.33]), "tasks": tasks, "modules": modules, "flows": [],
    }  # fmt: skip
    half = [max(m["arriving_pkts"], most / 2) for m in modules]
    for _ in range(rng.randint(1, 6)):
        path = [v for v in range(len(modules)) if rng.random() < 0.6] or [0]
        flow = {"modules": path, "tasks": sorted({modules[v]["task"] for v in path})}
        alone = {**program, "flows": [flow]}
        delay_ns = convex_oracle.model(alone, half, set(range(len(modules))))["delay_ns"][0]
        program["flows"].append({**flow, "budget_ns": delay_ns * log_uniform(rng, 0.5, 2)})
    return program


def true_prices(program: dict[str, Any], point: dict[str, Any]) -> list[float]:
    """Our prices ignore that at saturation a lower time per packet shortens all fills."""
    feedback = [0.0]
    for t, task in enumerate(program["tasks"]):
        if not task["is_saturated"]:
            continue
        load = point["task_pkt_ns"][t] * task["rate_pkts_per_ns"]
        feedback.append(0.0)
        for price, flow in zip(point["prices"], program["flows"], strict=True):
            for v in flow["modules"]:
                module = program["modules"][v]
                if module["task"] == t:
                    held = point["batches_pkts"][v] - module["arriving_pkts"]
                    fill_ns = program["fill_share"] * held * point["task_pkt_ns"][t]
                    feedback[-1] += price * fill_ns / module["share"] / load
    return [price / (1 - max(feedback)) for price in point["prices"]]


def compare(program: dict[str, Any], where: str) -> str:
    """Checks one program; returns the case that it was."""
    native = load_native()
    try:
        best = convex_oracle.solve(program)
    except convex_oracle.NotConvex:
        return "not convex"
    except convex_oracle.NotSolved:
        return "not solved"
    point = native.relax_program(program, SETTLED)
    whole = native.solve_program(program)
    budgets = [flow["budget_ns"] for flow in program["flows"]]
    excess = max(d / b - 1 for d, b in zip(point["delay_ns"], budgets, strict=True))
    if best is None:
        assert any(whole["is_infeasible"]), where
        return "infeasible" if any(point["is_short"]) or excess > OBJECTIVE else "unsettled"
    is_same = (
        not any(point["is_short"])
        and excess < OBJECTIVE
        and point["load"] == pytest.approx(best.load, rel=OBJECTIVE)
    )
    if not is_same and point["relaxations"] >= MANY_RELAXATIONS:
        return "unsettled"
    assert is_same, (where, point, best)
    # Compared in total, not one by one: if as many flows bind as modules are free, prices are not
    # unique.
    ours, theirs = (
        sum(p * b for p, b in zip(prices, budgets, strict=True)) / best.load
        for prices in (true_prices(program, point), best.prices)
    )
    is_priced = abs(ours - theirs) <= 0.01 * max(ours, theirs) + 1e-4
    if not any(whole["is_infeasible"]):
        assert whole["load"] >= best.load * (1 - OBJECTIVE), where
        worst = max(d / b for d, b in zip(whole["delay_ns"], budgets, strict=True))
        assert worst <= 1 + 1e-8, where
    return "same" if is_priced else "other prices"


def check(n_programs: int, is_saturated: bool, max_tasks: int, seed: int) -> None:
    cases = Counter(
        compare(
            random_program(seed + i, is_saturated, max_tasks),
            f"seed {seed + i}, saturated {is_saturated}, up to {max_tasks} tasks",
        )
        for i in range(n_programs)
    )
    print(dict(cases))
    assert cases["same"] > 0.3 * n_programs, cases
    assert cases["infeasible"] > 0.1 * n_programs, cases
    assert cases["unsettled"] <= 2 + 0.005 * n_programs, cases
    assert cases["other prices"] <= 1 + 0.01 * n_programs, cases
    assert cases["not solved"] <= 1 + 0.005 * n_programs, cases
    assert is_saturated or cases["not convex"] == 0, cases


KINDS = [(False, 1), (False, 2), (True, 1), (True, 2)]


@pytest.mark.parametrize(("is_saturated", "max_tasks"), KINDS)
def test_the_relaxed_problem_is_solved(is_saturated: bool, max_tasks: int) -> None:
    check(FEW, is_saturated, max_tasks, 0)


@pytest.mark.long
@pytest.mark.parametrize(("is_saturated", "max_tasks"), KINDS)
def test_thousands_of_relaxed_problems_are_solved(is_saturated: bool, max_tasks: int) -> None:
    check(MANY, is_saturated, max_tasks, 1_000_000)


@pytest.mark.parametrize("is_saturated", [False, True])
def test_both_write_the_same_model(is_saturated: bool) -> None:
    native = load_native()
    for seed in range(100):
        program = random_program(seed, is_saturated, 2)
        program["hold_ns"] = 1.5
        rng = random.Random(seed)
        for module in program["modules"]:
            module["sure_pkts"] = rng.choice([0, 1])
        for flow in program["flows"]:
            flow["least_turnaround_ns"] = rng.choice([0, 0.5 * flow["budget_ns"]])
        program["mixes_fills"] = rng.choice([False, True])
        for task in program["tasks"]:
            task["spread_scale"] = task["bare_scale"] = rng.choice([1.0, 0.5, 3.0])
        triggers = [
            float(rng.choice([0, math.floor(module["arriving_pkts"]) + 1, 5, 6, 8]))
            for module in program["modules"]
        ]
        held = {v for v, q in enumerate(triggers) if q > 0}
        batches = [
            q or m["arriving_pkts"] for q, m in zip(triggers, program["modules"], strict=True)
        ]
        ours = native.evaluate_program(program, triggers)
        theirs = convex_oracle.model(program, batches, held)
        assert ours["task_pkt_ns"] == pytest.approx(theirs["pkt_ns"])
        assert ours["turnaround_ns"] == pytest.approx(theirs["turnaround_ns"])
        assert ours["delay_ns"] == pytest.approx(theirs["delay_ns"])


def test_invalid_programs() -> None:
    native = load_native()
    program = random_program(1, False, 1)
    with pytest.raises(ValueError, match="as many triggers as modules"):
        native.evaluate_program(program, [])
    program["flows"][0]["modules"] = [99]
    with pytest.raises(ValueError, match="no module 99"):
        native.solve_program(program)
