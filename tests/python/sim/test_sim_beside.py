# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_beside.py - measured next to simulated: rows match by name, differences are relative."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

from rich.console import Console
from snapshots import snapshot

from batchplane.commands.beside import pairs, render_pairs
from batchplane.sim.result import Result


def twin(n_branches: int = 5) -> Result:
    """A simulated run that is one second longer than the measured one, at the same rates."""
    return cast(
        Result, SimpleNamespace(first=snapshot(0, n_branches), last=snapshot(2, n_branches))
    )


def test_quantities_are_paired_by_name() -> None:
    found = {
        (pair.subject, pair.quantity): pair for pair in pairs(snapshot(0), snapshot(1), twin())
    }
    rate = found["all", "rate in"]
    assert (rate.measured, rate.simulated, rate.difference) == (1e6, 1e6, 0.0)
    assert found["ttl_* x5", "batch"].measured == 8.0
    assert found["flow_* x5", "p99"].simulated == 11_004
    assert found["flow_* x5", "p99.9"].difference is None


def test_what_only_one_of_them_has_is_left_out() -> None:
    subjects = {pair.subject for pair in pairs(snapshot(0), snapshot(1), twin(n_branches=2))}
    assert "ttl_* x5" not in subjects and "in" in subjects


def test_the_table_says_which_is_which() -> None:
    out = io.StringIO()
    found = pairs(snapshot(0), snapshot(1), twin())
    Console(file=out, width=120).print(render_pairs(found, "costs: prior"))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    header: Any = next(line for line in lines if "simulated" in line and "difference" in line)
    assert header.split() == ["measured", "simulated", "difference"]
    assert any(line.split() == ["all", "rate", "in", "1.00", "Mpps", "1.00", "Mpps", "+0.0%"] for line in lines)  # fmt: skip
    assert lines[-1] == "costs: prior"
