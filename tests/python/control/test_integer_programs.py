# SPDX-License-Identifier: BSD-3-Clause
"""The solver's integer triggers compared with exact integer programs; bench/integer_programs.py has larger
ones."""

from __future__ import annotations

import statistics

import pytest
from integer_oracle import GAP, random_program, solve

from batchplane.native.loader import extension_path, load_native

pytestmark = pytest.mark.skipif(
    extension_path() is None, reason="NOT RUN: tools/build.sh run native has not been run"
)

SIZES = (5, 12)  # modules
PROGRAMS = 12
TIGHT = 0.693  # of a program's budgets
MOST, MEAN = 0.01, 0.001  # how much longer packets may take than under the best triggers


@pytest.mark.parametrize("is_saturated", [False, True])
def test_triggers_are_nearly_the_best_ones(is_saturated: bool) -> None:
    native = load_native()
    over = []
    for seed in range(PROGRAMS):
        program = random_program(seed, SIZES, is_saturated)
        best = solve(program)
        ours = native.solve_program(program)
        assert any(ours["is_infeasible"]) == (best is None), seed
        if best is None:
            continue
        theirs = native.evaluate_program(program, [float(q) for q in best.triggers_pkts])
        assert theirs["task_pkt_ns"][0] == pytest.approx(best.pkt_ns, rel=1e-9)
        for delay_ns, flow in zip(theirs["delay_ns"], program["flows"], strict=True):
            assert delay_ns <= flow["budget_ns"] * (1 + 1e-6), seed
        over.append(ours["task_pkt_ns"][0] / best.pkt_ns - 1)
    assert len(over) >= PROGRAMS / 2
    assert min(over) >= -2 * GAP, "better than the best"
    assert max(over) <= MOST
    assert statistics.mean(over) <= MEAN


# Larger programs, with the time per packet that `solve` finds in minutes. In each, triggers fit only if
# several are raised together, or if a module that flows share gives way to those behind it.
FOUND = [
    (22, (23, 30), False, 82.25060108277555),
    (7, (23, 30), True, 95.81579733693371),
    (7, (16, 22), True, 95.88494512576088),
]


@pytest.mark.parametrize(("seed", "sizes", "is_saturated", "best_ns"), FOUND)
def test_triggers_that_only_fit_together_are_found(
    seed: int, sizes: tuple[int, int], is_saturated: bool, best_ns: float
) -> None:
    ours = load_native().solve_program(random_program(seed, sizes, is_saturated))
    assert not any(ours["is_infeasible"])
    assert 1 - 2 * GAP <= ours["task_pkt_ns"][0] / best_ns <= 1.004


# Rounding and raising alone end 7 % above the best.
def test_triggers_move_and_others_make_room() -> None:
    program = random_program(3213, (5, 8), True)
    for flow in program["flows"]:
        flow["budget_ns"] *= TIGHT
    best = solve(program)
    assert best is not None
    ours = load_native().solve_program(program)
    assert not any(ours["is_infeasible"])
    assert ours["task_pkt_ns"][0] <= 1.01 * best.pkt_ns
