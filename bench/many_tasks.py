#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""many_tasks.py - controllers of several tasks compared with the best fixed triggers.

usage: bench/many_tasks.py [--pipelines 60] [--first 0] [--periods 400] [--jobs N] [--steps]
                           [CONTROLLER...]

Random pipelines of two to four tasks, each on its own worker, in virtual time: saturated, with an
SLO of 0.5 to 1.0 of the p95 of full batches with rings of 64. The search for the best fixed
triggers uses one trigger per task and one credit for all rings (tests/python/random_tasks.py).
Prints for each controller its rate relative to the best, the share of periods in which it broke an
SLO, once settled, and what it broke in the 60 periods before. The best fixed triggers are run as
long: the search sees eight periods of each. With --steps it prints how long a step takes with 64
branches in each of three tasks.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

from random_tasks import (  # noqa: E402
    PERIOD_NS,
    SETTLE,
    Found,
    best_fixed,
    random_tasks,
    run_controlled,
    run_fixed,
    slo_of,
    slo_share,
    with_slo,
)

from batchplane.native.loader import make_simulation  # noqa: E402

FIXED = "the best fixed"
BRANCHES = 64
PERIODS = 400
STEP_SEEDS = (0, 9, 17)  # pipelines of four tasks, three of which have branches

Runs = dict[str, tuple[float, Found]]


def compared(seed: int, controllers: tuple[str, ...], periods: int) -> tuple[str, Runs]:
    """A description of the pipeline, and each controller's ratio and run. No ratio if no fixed
    triggers meet the SLO."""
    spec = random_tasks(seed)
    share = slo_share(seed)
    slo_ns = slo_of(spec, share)
    best_pps, choice, credit = best_fixed(spec, slo_ns)
    found: Runs = {}
    if best_pps:
        run = run_fixed(with_slo(spec, slo_ns), choice, credit, SETTLE, periods)
        found[FIXED] = (run.rate_pps / best_pps, run)
    for name in controllers:
        run = run_controlled(spec, name, slo_ns, SETTLE, periods)
        found[name] = (run.rate_pps / best_pps if best_pps else float("nan"), run)
    told = f"{seed:3} {len(spec['workers'])} tasks {len(spec['flows']):2} flows, SLO {share:.2f}"
    how = f"{best_pps / 1e6:.2f} Mpps {list(choice.values())} ring {credit}" if best_pps else "none"
    return f"{told}, best fixed {how}", found


def print_settling(name: str, runs: list[tuple[bool, ...]]) -> None:
    """Prints how many SLOs were broken before periods count, and until when."""
    if not any(runs):
        return
    last = sorted(max((i + 1 for i, late in enumerate(run) if late), default=0) for run in runs)
    n = len(last)
    print(
        f"{name}, first {len(runs[0])} periods: {statistics.mean(map(statistics.mean, runs)):.1%} "
        f"violated, the last one in half of the pipelines up to period {last[n // 2]}, in three of "
        f"four up to {last[3 * n // 4]}, in nine of ten up to {last[9 * n // 10]}"
    )


def step_us(seed: int, controller: str) -> tuple[float, float]:
    """The median processor time of a step, with its counters, and of counting alone."""
    spec = random_tasks(seed, BRANCHES)
    sim = make_simulation(with_slo(spec, slo_of(spec, 0.7)))
    sim.set_controller(controller, {})
    spent: dict[bool, list[float]] = {True: [], False: []}
    for number in range(60):
        sim.run_until(int(sim.now_ns) + PERIOD_NS)
        is_step = number < 10 or number % 2 == 0
        begin = time.thread_time()
        sim.step() if is_step else sim.period()
        if number >= 10:
            spent[is_step].append((time.thread_time() - begin) * 1e6)
    return statistics.median(spent[True]), statistics.median(spent[False])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipelines", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--periods", type=int, default=PERIODS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("controllers", nargs="*", default=["optimal", "primal(fixstep)"])
    args = parser.parse_args()
    names = tuple(args.controllers)
    for seed in STEP_SEEDS if args.steps else ():
        steps = (
            f"{name} {whole:.0f} ({count:.0f} of them counts)"
            for name in names
            for whole, count in [step_us(seed, name)]
        )
        print(f"{seed:3}, us a step: {', '.join(steps)}", flush=True)
    if args.steps:
        return 0
    seeds = range(args.first, args.first + args.pipelines)
    every: dict[str, list[tuple[float, Found]]] = {name: [] for name in (*names, FIXED)}
    with ProcessPoolExecutor(args.jobs) as pool:
        for told, found in pool.map(
            compared, seeds, [names] * len(seeds), [args.periods] * len(seeds)
        ):
            columns = [
                f"{n} {ratio:.3f} ({run.violated:.0%} violated)"
                for n, (ratio, run) in found.items()
            ]
            print(f"{told}: {', '.join(columns)}", flush=True)
            for name, one in found.items():
                every[name].append(one)
    for name, runs in every.items():
        ratios = sorted(ratio for ratio, _ in runs if ratio == ratio)
        kept = [run.violated for ratio, run in runs if ratio == ratio]
        print(
            f"{name}: mean {statistics.mean(ratios):.3f}, least {ratios[0]:.3f}, "
            f"10th percentile {ratios[len(ratios) // 10]:.3f} of the best fixed triggers; "
            f"{statistics.mean(kept):.2%} of periods violated, in {sum(v > 0 for v in kept)} of "
            f"{len(ratios)} pipelines; {len(seeds) - len(ratios)} left out: nothing keeps the SLO"
        )
        print_settling(name, [run.settling for ratio, run in runs if ratio == ratio])
    return 0


if __name__ == "__main__":
    sys.exit(main())
