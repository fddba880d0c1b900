#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""oracle.py - controllers against the best fixed triggers, on one core, with profiled costs.

usage: bench/oracle.py [--slos 12] [--periods 60] [--noise 0] [--cases a,b] [CONTROLLER...]

Each pipeline is saturated in virtual time with the costs in bench/costs. SLOs go from the p95 that
nothing held has to that of full batches. The best fixed triggers that keep an SLO are searched for
over classes of modules (tests/python/fixed_triggers.py). Told of each controller: its rate over
theirs, and the share of periods in which the worst flow's SLO was broken, once settled.
"""

from __future__ import annotations

import argparse
import copy
import re
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

from fixed_triggers import ALLOWED, FixedTriggers, Point  # noqa: E402

from batchplane.experiments.common.case import NO_LIMIT, Case, inputs_of  # noqa: E402
from batchplane.native.loader import make_simulation  # noqa: E402

COSTS = ROOT / "bench" / "costs"
PERIOD_NS = 10_000_000
SETTLE_PERIODS = 40
# Name -> pipeline, parameters, and the flows whose delay counts (all).
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "gateway(16)": ("gateway", {"nexthops": 16}, ()),
    "gateway(64)": ("gateway", {"nexthops": 64}, ()),
    "gateway(4,8)": ("gateway", {"branches": 4, "nexthops": 8}, ()),
    "l2l3(16)": ("l2l3", {"nexthops": 16}, ()),
    "l2l3(64)": ("l2l3", {"nexthops": 64}, ()),
    "vrf(2,4)": ("vrf", {"vrfs": 2, "nexthops": 4}, ()),
    "vrf(4,8)": ("vrf", {"vrfs": 4, "nexthops": 8}, ()),
    "robot_control(16)": ("robot_control", {"n": 16}, ("robot",)),
    "tree(8)": ("tree", {"leaves": 8}, ()),
    "mgw(2,4)": ("mgw", {"bearers": 2, "users": 4}, ()),
}


@dataclass(frozen=True)
class Run:
    """Of a controller, once settled."""

    rate_pps: float
    violated: float  # share of the worst flow's periods
    settled: int  # the first period from which on its rate is within 2 % of that


def spec_of(case: str) -> dict[str, Any]:
    """The simulator's input, saturated, buffers without age limits of their own."""
    pipeline, params, _ = CASES[case]
    costs = COSTS / f"{re.sub(r'[(,]', '_', case).strip(')')}.json"
    given = {**params, "age_limit": NO_LIMIT}
    made = inputs_of(Case(case, pipeline, "null", given, costs=str(costs), sets=("idle=hold",)))
    spec = copy.deepcopy(dict(made.spec))
    spec["engine"]["idle"] = "hold"
    for generator in spec["generators"]:
        generator["params"] = {**generator["params"], "saturate": True}
    return spec


def controlled(
    spec: dict[str, Any], controller: str, slo_ns: int, flows: tuple[str, ...], n: int
) -> Run:
    """A run of settling and n periods."""
    spec = copy.deepcopy(spec)
    for flow in spec["flows"]:
        flow["delay_slo_ns"] = slo_ns if not flows or flow["name"] in flows else 0
    sim = make_simulation(spec)
    sim.set_controller(controller, {})
    late = [0] * len(spec["flows"])
    rates = []
    for number in range(SETTLE_PERIODS + n):
        sim.run_until((number + 1) * PERIOD_NS)
        period, _ = sim.step()
        rates.append(sum(period["tasks"]["in_pkts"]) * 1e9 / period["period_ns"])
        if number < SETTLE_PERIODS:
            continue
        seen = period["flows"]
        for f, row in enumerate(spec["flows"]):
            if row["delay_slo_ns"]:
                late[f] += seen["late_pkts"][f] > ALLOWED * seen["pkts"][f] + 1e-6
    rate = statistics.mean(rates[SETTLE_PERIODS:])
    off = [i for i, r in enumerate(rates) if abs(r - rate) > 0.02 * rate]
    return Run(rate, max(late) / n, off[-1] + 1 if off else 0)


def search(case: str, n: int) -> list[tuple[int, Point | None]]:
    """The SLOs of a case, and the best of each."""
    fixed = FixedTriggers(spec_of(case), CASES[case][2])
    fixed.explore()
    low, high = sorted((fixed.alike(0).p95_ns, fixed.alike(32).p95_ns))
    slos = [int(1.005 * (low + (high - low) * i / max(n - 1, 1))) for i in range(n)]
    return [(slo, fixed.best(slo)) for slo in slos]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slos", type=int, default=12)
    parser.add_argument("--periods", type=int, default=60)
    parser.add_argument("--noise", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cases", default="")
    parser.add_argument("controllers", nargs="*", default=["optimal", "full"])
    args = parser.parse_args()
    cases = args.cases.split(";") if args.cases else list(CASES)
    every: dict[str, list[tuple[float, float]]] = {name: [] for name in args.controllers}
    with ProcessPoolExecutor(args.jobs) as pool:
        found = {case: pool.submit(search, case, args.slos) for case in cases}
        for case in cases:
            spec, flows = spec_of(case), CASES[case][2]
            if args.noise:
                spec["simulation"]["noise"] = {"sigma": args.noise}
            rows = found[case].result()
            runs = [
                [pool.submit(controlled, spec, name, slo, flows, args.periods) for name in every]
                for slo, _ in rows
            ]
            print(f"{case}", flush=True)
            for (slo, best), row in zip(rows, runs, strict=True):
                told = [f"{slo / 1e3:8.1f} us"]
                told.append(
                    f"best {best.rate_pps / 1e6:6.2f} Mpps {list(best.triggers)!s:16}"
                    if best
                    else "nothing keeps it          "
                )
                for name, future in zip(every, row, strict=True):
                    run = future.result()
                    ratio = run.rate_pps / best.rate_pps if best else float("nan")
                    if best:
                        every[name].append((ratio, run.violated))
                    told.append(f"{name} {ratio:.3f} {run.violated:5.1%} {run.settled:3}")
                print("  ", " | ".join(told), flush=True)
    for name, seen in every.items():
        if not seen:
            continue
        ratios = sorted(ratio for ratio, _ in seen)
        print(
            f"{name}: mean {statistics.mean(ratios):.3f}, least {ratios[0]:.3f}, "
            f"violated {statistics.mean(v for _, v in seen):.2%}, "
            f"more than 0.5 % in {sum(v > 0.005 for _, v in seen)} of {len(seen)}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
