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
