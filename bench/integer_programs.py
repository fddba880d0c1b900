# SPDX-License-Identifier: BSD-3-Clause
"""integer_programs.py - the solver's triggers compared with exact integer programs.

Random programs of one task with 9 to 30 modules, below saturation and at it. "over" is how much
longer a packet takes under our triggers than under the best ones. 5 minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TREE / "python"), str(TREE / "tests" / "python")]

from integer_oracle import NotSolved, random_program, solve  # noqa: E402

from batchplane.native.loader import load_native  # noqa: E402

LIMIT_S = 60
SIZES = ((9, 15), (16, 22), (23, 30))  # modules


def over(seed: int, sizes: tuple[int, int], is_saturated: bool) -> float | str:
    """How much longer than necessary a packet takes, or why this is not known."""
    program = random_program(seed, sizes, is_saturated)
    try:
        best = solve(program, LIMIT_S)
    except NotSolved:
        return "not solved"
    ours = load_native().solve_program(program)
    is_left_out = any(ours["is_infeasible"])
    if best is None:
        return "infeasible" if is_left_out else "wrongly feasible"
    if is_left_out:
        return "wrongly infeasible"
    return float(ours["task_pkt_ns"][0]) / best.pkt_ns - 1


def row(sizes: tuple[int, int], is_saturated: bool, found: list[float | str]) -> str:
    numbers = sorted(x for x in found if not isinstance(x, str))
    words = sorted({x for x in found if isinstance(x, str)})
    mean, most = (statistics.mean(numbers), numbers[-1]) if numbers else (0.0, 0.0)
    late = "".join(f", {found.count(word)} {word}" for word in words)
    load = "saturated" if is_saturated else "below saturation"
    return (
        f"{sizes[0]:2} to {sizes[1]:2} modules, {load:16}: {len(numbers):3} programs, over by "
        f"{mean:.3%} in the mean, {most:.2%} at most{late}"
    )


def silence() -> None:
    """HiGHS prints messages of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=24, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.programs)
    with ProcessPoolExecutor(options.jobs, initializer=silence) as pool:
        for is_saturated in (False, True):
            for sizes in SIZES:
                n = len(seeds)
                found = list(pool.map(over, seeds, [sizes] * n, [is_saturated] * n))
                print(row(sizes, is_saturated, found), flush=True)


if __name__ == "__main__":
    main()
