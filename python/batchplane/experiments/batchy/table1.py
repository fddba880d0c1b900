# SPDX-License-Identifier: BSD-3-Clause
"""table1.py - response time of a controller by number of branches, and its parts (table 1).

Simulated: steps of the controllers are timed in this process, on snapshots of the simulator.
Measured: the daemon's own timing of its steps, which does not separate reading counters from
changing buffers.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration
from ...native.loader import NativeSimulation, make_simulation
from ...plots.base import COLOURS
from ..common.case import NO_LIMIT, Case, inputs_of
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_most, in_range, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("full", "optimal")
BRANCHES = (2, 4, 8, 16, 32, 64)
_PERIOD_NS = 10_000_000
_UNTIMED = 5  # first periods: buffers are inserted, memory is allocated
PAPER_MIN_NS, PAPER_MAX_NS = 2e6, 90e6


def make_case(controller: str, branches: int, setup: Setup) -> Case:
    """Robot control with that many branches at full load."""
    periods = 40 if setup.is_quick else 200
    return Case(
        f"{controller}/{branches}",
        "robot_control",
        controller,
        {"n": branches, "saturate": True, "age_limit": NO_LIMIT},
        sets=("idle=hold",),
        costs=setup.costs,
        period_ns=_PERIOD_NS,
        warmup_periods=_UNTIMED,
        periods=periods,
    )


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Each controller at each number of branches."""
    cells = [(controller, n) for controller in CONTROLLERS for n in BRANCHES]
    cases = {(c, n): make_case(c, n, setup) for c, n in cells}
    if setup.is_measured:
        results = yield list(cases.values())
        rows = [measured_row(c, n, results[cases[c, n].key]) for c, n in cells]
    else:
        yield []
        rows = [stepped_row(c, n, timed_steps(cases[c, n])) for c, n in cells]
    return Outcome(rows, COLUMNS, claims(rows, setup), lambda: draw(rows, setup))


# --- timed here -----------------------------------------------------------------------------------


def timed_steps(
    case: Case, now_ns: Callable[[], int] = time.perf_counter_ns
) -> dict[str, list[int]]:
    """Durations by part: every second period has the parts, the others the whole step."""
    inputs = inputs_of(case)
    native: NativeSimulation = make_simulation(inputs.spec)
    for edit in inputs.edits:
        native.edit(edit)
    native.set_controller(case.controller, dict(case.settings))
    spent: dict[str, list[int]] = {"statistics": [], "apply": [], "whole": []}
    decision: dict[str, Any] = {"changes": []}
    gc_was_on = gc.isenabled()
    gc.disable()  # garbage collection is not part of a step
    try:
        for number in range(case.warmup_periods + case.periods):
            native.run_until((number + 1) * case.period_ns)
            is_timed = number >= case.warmup_periods
            if is_timed and number % 2:
                start_ns = now_ns()
                native.period()
                middle_ns = now_ns()
                native.apply(decision)
                spent["statistics"].append(middle_ns - start_ns)
                spent["apply"].append(now_ns() - middle_ns)
                continue
            start_ns = now_ns()
            _, decided = native.step()
            end_ns = now_ns()
            decision = decided if decided["changes"] else decision
            if is_timed:
                spent["whole"].append(end_ns - start_ns)
    finally:
        if gc_was_on:
            gc.enable()
    return spent


def stepped_row(controller: str, branches: int, spent: dict[str, list[int]]) -> Row:
    """Lower quartiles, as other programs disturb them least; the rest of a step is the
    algorithm."""
    parts = {name: statistics.quantiles(values, n=4)[0] for name, values in spent.items()}
    rest = parts["whole"] - parts["statistics"] - parts["apply"]
    return _row(controller, branches, parts["statistics"], max(rest, 0.0), parts["apply"])


# --- a daemon's -----------------------------------------------------------------------------------


def measured_row(controller: str, branches: int, result: dict[str, Any]) -> Row:
    """The daemon's medians; it does not separate statistics from apply."""
    algorithm = float(result["median_controller_ns"] or 0)
    rest = max(float(result["median_step_ns"] or 0) - algorithm, 0.0)
    row = _row(controller, branches, None, algorithm, None, rest)
    return {**row, "p99_ns": float(result["p99_step_ns"] or 0)}


def _row(
    controller: str,
    branches: int,
    statistics_ns: float | None,
    algorithm_ns: float,
    apply_ns: float | None,
    rest_ns: float | None = None,
) -> Row:
    if rest_ns is None:
        rest_ns = (statistics_ns or 0.0) + (apply_ns or 0.0)
    total = rest_ns + algorithm_ns
    return {
        "controller": controller,
        "branches": branches,
        "statistics_ns": statistics_ns,
        "apply_ns": apply_ns,
        "statistics_and_apply_ns": rest_ns,
        "algorithm_ns": algorithm_ns,
        "total_ns": total,
        "algorithm_ratio": algorithm_ns / total if total > 0 else 0.0,
        "p99_ns": None,
    }


# --- claims ---------------------------------------------------------------------------------------


def claims(rows: list[Row], setup: Setup) -> list[Verdict]:
    """The paper's claims about table 1, and our own requirement."""

    def values(key: str, controller: str = "") -> dict[str, float]:
        return {
            f"{row['controller']} with {row['branches']}": float(row[key])
            for row in rows
            if controller in ("", row["controller"])
        }

    def grown(controller: str) -> float:
        totals = {
            row["branches"]: row["total_ns"] for row in rows if row["controller"] == controller
        }
        return float(totals[max(totals)] / max(totals[min(totals)], 1.0))

    span = in_range(
        "a response takes 2 to 90 ms", values("total_ns", "full"),
        PAPER_MIN_NS, PAPER_MAX_NS, short_duration, is_more_better=False,
    )  # fmt: skip
    share = in_range(
        "about a third of it is the algorithm, the rest statistics and apply",
        values("algorithm_ratio", "full"), 0.25, 0.42, percent, is_more_better=False,
    )  # fmt: skip
    growth = at_most(
        f"ours: from {min(BRANCHES)} to {max(BRANCHES)} branches it grows no faster than they do",
        {c: grown(c) for c in CONTROLLERS}, max(BRANCHES) / min(BRANCHES),
        lambda value: f"{value:.1f}x",
    )  # fmt: skip
    algorithm = at_most(
        "ours: one step of optimal takes at most 50 us", values("algorithm_ns", "optimal"), 50e3,
        short_duration,
    )  # fmt: skip
    found = [growth, algorithm]
    if setup.is_measured:  # timed here, the other parts are mostly Python
        found.append(
            at_most(
                "ours: statistics, step and apply take at most 200 us", values("total_ns"), 200e3,
                short_duration,
            )
        )  # fmt: skip
    return [span, share, *found]


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Stacked bars by number of branches, one panel per controller; the paper's range as text."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.8), layout="constrained")
    origin = setup.origin if setup.is_measured else "steps timed here, on simulated snapshots"
    figure.suptitle(f"response time by branches of robot control ({origin})", fontsize=10)
    panels = figure.subplots(1, len(CONTROLLERS), sharey=True, squeeze=False)[0]
    is_parted = all(row["statistics_ns"] is not None for row in rows)
    parts = (
        ("statistics", "algorithm", "apply") if is_parted else ("statistics_and_apply", "algorithm")
    )
    for panel, controller in zip(panels, CONTROLLERS, strict=True):
        mine = [row for row in rows if row["controller"] == controller]
        base = [0.0] * len(mine)
        for i, part in enumerate(parts):
            heights = [row[f"{part}_ns"] / 1e3 for row in mine]
            label = part.replace("_", " ")
            panel.bar(range(len(mine)), heights, 0.7, base, color=COLOURS[i], label=label)
            base = [b + h for b, h in zip(base, heights, strict=True)]
        panel.set_xticks(range(len(mine)), [str(row["branches"]) for row in mine])
        panel.set_xlabel("branches")
        panel.set_title(f"{controller} (paper: 2000 to 90000 us)", fontsize=10)
        panel.grid(True, axis="y", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    panels[0].set_ylabel("median response time [us]")
    panels[0].legend(fontsize=8)
    return figure


COLUMNS = (
    ("controller", "<controller", shown),
    ("branches", "branches", shown),
    ("statistics_ns", "statistics", short_duration),
    ("algorithm_ns", "algorithm", short_duration),
    ("apply_ns", "apply", short_duration),
    ("statistics_and_apply_ns", "statistics and apply", short_duration),
    ("total_ns", "all", short_duration),
    ("algorithm_ratio", "algorithm's share", percent),
)

EXPERIMENT = Experiment(
    "table1", "response time of controllers by number of branches (table 1)", plan, "table1",
    CONTROLLERS, "Periods of 10 ms; simulated: parts include handing them to Python and back.",
    BOTH,
)  # fmt: skip
