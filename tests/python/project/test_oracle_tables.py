# SPDX-License-Identifier: BSD-3-Clause
"""test_oracle_tables.py - the smallest part of each table of bench/oracle.py and bench/many_tasks.py:
`optimal` against a search over fixed triggers, which knows nothing of the model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from built import needs_extension

TREE = Path(__file__).resolve().parents[3]
FEW = ("--slos", "2", "--jobs", "1", "optimal")

LEAST = 0.95  # of the rate of the best fixed triggers


def run(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TREE / "bench" / script), *words],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@needs_extension
@pytest.mark.parametrize(
    "words",
    [
        ("saturated", "--cases", "gateway(16)", "--periods", "20"),
        ("noise", "--cases", "gateway(16)", "--periods", "20"),
        ("shared", "--cases", "gateway(16)", "--periods", "20"),
        ("stairs", "--cases", "tree(8)", "--periods", "20"),
    ],
)
def test_optimal_carries_what_the_best_fixed_triggers_carry(words: tuple[str, ...]) -> None:
    table = run("oracle.py", *words, *FEW)
    assert table.returncode == 0, table.stderr
    least = re.search(r"^optimal: mean [\d.]+, least ([\d.]+)", table.stdout, re.MULTILINE)
    assert least is not None, table.stdout
    assert float(least[1]) >= LEAST, table.stdout  # without buffers: 0.35 to 0.69


@needs_extension
def test_optimal_is_as_busy_as_the_least_busy_fixed_triggers() -> None:
    table = run("oracle.py", "load", "--cases", "tree(8)", "--periods", "20", *FEW)
    assert table.returncode == 0, table.stderr
    most = re.search(
        r"^optimal: late in (\d+) of [1-9]\d* points .* most ([\d.]+) ", table.stdout, re.MULTILINE
    )
    assert most is not None, table.stdout
    assert int(most[1]) == 0 and float(most[2]) <= 1.05, table.stdout


@needs_extension
def test_optimal_keeps_what_fixed_batches_of_stages_keep() -> None:
    table = run("stage_batches.py", "150us")
    assert table.returncode == 0, table.stdout + table.stderr
    assert table.stdout.splitlines()[-1].startswith("0 of 6 points missed"), table.stdout


@needs_extension
def test_optimal_chooses_rings_and_triggers_of_several_tasks() -> None:
    table = run("many_tasks.py", "--pipelines", "1", "--jobs", "1", "optimal")
    assert table.returncode == 0, table.stderr
    least = re.search(r"^optimal: mean [\d.]+, least ([\d.]+)", table.stdout, re.MULTILINE)
    assert least is not None, table.stdout
    assert float(least[1]) >= LEAST, table.stdout


def test_a_case_that_is_not_there_is_told() -> None:
    table = run("oracle.py", "saturated", "--cases", "nothing")
    assert table.returncode == 2
    assert "no case 'nothing': one of gateway(16)" in table.stderr
