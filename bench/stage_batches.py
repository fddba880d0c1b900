#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""stage_batches.py - batches and age limits of modules on devices, simulated.

usage: .venv/bin/python bench/stage_batches.py [SLO...]      100us 150us 300us 1ms: a few minutes

The pipeline `devices`, with two modules on one device whose batches take 25 us and more, and one on
a thread, is offered several rates. `optimal` starts from batches of 8 and of 512 packets with age
limits of 20 us and 1 ms; each point shows in how many of 20 periods, after 20 to settle, it breaks
an SLO, and the same for the best of all combinations of batches and age limits that stay as they
are. Exit code 1 if those keep SLOs, with 5 % to spare, that `optimal` does not.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pool
from typing import Any

from batchplane.experiments.common.case import Case, inputs_of
from batchplane.experiments.common.measure import run_case

SLOS = ("100us", "150us", "300us", "1ms")
RATES_PPS = (200_000, 1_000_000, 2_000_000)
BATCHES = (8, 32, 64, 256)
AGE_LIMITS = ("30us", "60us", "100us", "900us")
STARTS = ((8, "20us"), (512, "1ms"))
WARMUP, PERIODS = 20, 20
SPARE = 0.95  # of an SLO


@dataclass(frozen=True)
class Point:
    """One way to wait, rate and SLO."""

    idle: str
    rate_pps: int
    slo: str
    violated: tuple[float, ...]  # shares of periods, by start of `optimal`
    best: str
    best_violated: float  # of the SLO less what is to spare

    @property
    def is_missed(self) -> bool:
        """Whether settings that stay keep an SLO that `optimal` breaks."""
        return self.best_violated == 0 and max(self.violated) > 0


def violated(
    controller: str, idle: str, rate_pps: int, slo_ns: float, batch: int, age_limit: str
) -> float:
    """Share of periods in which a flow breaks its SLO."""
    params: dict[str, Any] = {
        "rate_pps": rate_pps, "slo": f"{slo_ns:.0f}ns", "gpu_batch": batch, "cpu_batch": batch,
        "age_limit": age_limit, "idle": idle,
    }  # fmt: skip
    name = f"{controller}/{idle}/{rate_pps}/{slo_ns}/{batch}/{age_limit}"
    sets = ("idle=hold",) if idle == "hold" else ()
    case = Case(
        name, "devices", controller, params, sets=sets, warmup_periods=WARMUP, periods=PERIODS
    )
    return float(run_case(inputs_of(case), case)["violated_ratio"])


def point_of(at: tuple[str, int, str]) -> Point:
    """One point of the table."""
    idle, rate_pps, slo = at
    slo_ns = ns_of(slo)
    fixed = [
        (violated("null", idle, rate_pps, SPARE * slo_ns, batch, age), f"{batch} {age}")
        for batch, age in itertools.product(BATCHES, AGE_LIMITS)
    ]
    best_violated, best = min(fixed, key=lambda found: found[0])
    mine = [violated("optimal", idle, rate_pps, slo_ns, *start) for start in STARTS]
    return Point(idle, rate_pps, slo, tuple(mine), best, best_violated)


def ns_of(text: str) -> float:
    """A time such as 150us, in ns."""
    match = re.fullmatch(r"([\d.]+)(us|ms)", text)
    if match is None:
        raise ValueError(f"'{text}' is no time such as 150us or 1ms")
    return float(match[1]) * {"us": 1e3, "ms": 1e6}[match[2]]


def lines(points: list[Point]) -> Iterator[str]:
    """A row for each point."""
    for p in points:
        mine = "  ".join(f"{share:7.1%}" for share in p.violated)
        yield (
            f"{p.idle:<9}{p.rate_pps / 1e6:5.1f} Mpps{p.slo:>7}   {mine}   "
            f"{p.best_violated:7.1%} {p.best:<12}{'missed' if p.is_missed else ''}".rstrip()
        )


def main(slos: list[str]) -> int:
    """Prints the table for these SLOs, or for all."""
    try:
        for slo in slos:
            ns_of(slo)
    except ValueError as error:
        print(f"stage_batches: {error}")
        return 2
    print("devices       rate    SLO   from 8   from 512   fixed: batch and age limit")
    points: list[Point] = []
    with Pool(2) as pool:
        all_points = list(itertools.product(("release", "hold"), RATES_PPS, slos or SLOS))
        for point in pool.imap(point_of, all_points):
            points.append(point)
            print(*lines([point]), flush=True)
    missed = sum(p.is_missed for p in points)
    print(f"{missed} of {len(points)} points missed that fixed batches and age limits keep")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
