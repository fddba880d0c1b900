#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""overload.py - open-loop loads between the rates of null and of full batches, simulated.

usage: .venv/bin/python bench/overload.py [PIPELINE...]      all of them: 4 minutes on two cores

Each pipeline is offered shares of the rate of full batches, at SLOs that are shares of their p95.
Every point shows the rate of `optimal`, the share of periods in which it breaks an SLO (30 periods,
after 30 to settle) and by how much, and the same for the best fixed triggers. Exit code 1 if those
meet SLOs that `optimal` does not.
"""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing import Pool
from typing import Any

from batchplane.experiments.common.case import Case, inputs_of
from batchplane.experiments.common.measure import run_case

PIPELINES: dict[str, tuple[str, dict[str, Any]]] = {
    "tree(4)": ("tree", {"leaves": 4}),
    "tree(8), a heavy leaf": (
        "tree",
        {"leaves": 8, "per_batch_cycles_0": 4000, "per_pkt_cycles_0": 200},
    ),
    "tree(16)": ("tree", {"leaves": 16, "weight_0": 2}),
    "l2l3(16)": ("l2l3", {"nexthops": 16}),
    "gateway(16)": ("gateway", {"nexthops": 16}),
    "gateway(64)": ("gateway", {"nexthops": 64}),
    "vrf(2,4)": ("vrf", {"vrfs": 2, "nexthops": 4}),
}
LOADS = (0.3, 0.6, 0.8, 0.9, 0.95)
SLOS = (0.5, 0.8, 1.2, 2.0)
FIXED = ("null", "fixed(4)", "fixed(8)", "fixed(16)", "fixed(24)", "max")
WARMUP, PERIODS = 30, 30
MAX_VIOLATED = 0.005  # of periods


@dataclass(frozen=True)
class Point:
    """One load and SLO of one pipeline."""

    pipeline: str
    load: float
    slo: float
    slo_ns: int
    carried: float
    violated: float
    excess: float
    best: str
    best_violated: float

    @property
    def is_missed(self) -> bool:
        """Whether fixed triggers meet SLOs that `optimal` does not."""
        return self.violated > max(MAX_VIOLATED, self.best_violated)


def measured(pipeline: str, controller: str, slo_ns: int, **params: Any) -> dict[str, Any]:
    """One run of a pipeline; all flows have the same SLO."""
    name, own = PIPELINES[pipeline]
    case = Case(
        f"{pipeline}/{controller}",
        name,
        controller,
        {**own, "age_limit": "1000s", **params},
        sets=("idle=hold",),
        warmup_periods=WARMUP,
        periods=PERIODS,
    )
    inputs = inputs_of(case)
    spec = copy.deepcopy(dict(inputs.spec))
    for flow in spec["flows"]:
        flow["delay_slo_ns"] = slo_ns
    return run_case(replace(inputs, spec=spec), case)


def points_of(pipeline: str) -> list[Point]:
    """All loads and SLOs of a pipeline."""
    full = measured(pipeline, "max", 10**9, saturate="true")
    points = []
    for load, slo in itertools.product(LOADS, SLOS):
        offered = round(load * full["rate_pps"])
        slo_ns = int(slo * full["delay_mean_of_periods_ns"])
        runs = {
            controller: measured(pipeline, controller, slo_ns, rate_pps=offered)
            for controller in (*FIXED, "optimal")
        }
        best = min(FIXED, key=lambda name: float(runs[name]["violated_ratio"]))
        mine = runs["optimal"]
        points.append(
            Point(
                pipeline, load, slo, slo_ns, mine["rate_pps"] / offered, mine["violated_ratio"],
                mine["excess_mean_ratio"], best, runs[best]["violated_ratio"],
            )
        )  # fmt: skip
    return points


def lines(points: list[Point]) -> Iterator[str]:
    """A row for each point."""
    for p in points:
        excess = f"{p.excess:8.2f}" if p.violated else "       -"
        yield (
            f"{p.pipeline:<22}{p.load:5.2f}{p.slo:5.1f}{p.slo_ns / 1e3:8.1f} us"
            f"{p.carried:9.3f}{p.violated:10.1%}{excess}   {p.best_violated:6.1%} {p.best:<10}"
            f"{'missed' if p.is_missed else ''}"
        )


def main(names: list[str]) -> int:
    """Prints the table of these pipelines, or of all."""
    unknown = [name for name in names if name not in PIPELINES]
    if unknown:
        print(f"overload: no pipeline '{unknown[0]}' (one of: {', '.join(PIPELINES)})")
        return 2
    print("pipeline               load  SLO       SLO   carried  violated  excess   best fixed")
    points: list[Point] = []
    with Pool(2) as pool:
        for found in pool.imap(points_of, names or list(PIPELINES)):
            points += found
            print(*lines(found), sep="\n", flush=True)
    missed = sum(p.is_missed for p in points)
    print(f"{missed} of {len(points)} points missed that fixed triggers keep; excess in SLOs")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
