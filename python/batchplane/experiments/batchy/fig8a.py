# SPDX-License-Identifier: BSD-3-Clause
"""fig8a.py - speed-up over null by number of branches and batchiness, as contours (figure 8a)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...base.units import short_rate
from ..common.case import NO_LIMIT, Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, in_range, span, times
from .speedup import nowhere_slower, over_null

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "full", "optimal")
LEAVES = (1, 2, 4, 8, 16, 32)
_PER_BATCH_CYCLES = 10_000
_BUFFERED_SETTINGS = {"controllable_bound": 1.0}  # as in the scripts: every leaf has a buffer


BATCHINESS = tuple(percent / 100 for percent in range(5, 100, 5))


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """A tree of equal leaves, at full load, SLO 5 ms."""
    warmup, periods, period_ns = (15, 20, 10_000_000) if setup.is_quick else (40, 40, 100_000_000)
    cells = [(n, psi) for n in LEAVES for psi in BATCHINESS]
    results = yield [
        Case(
            f"{n}/{psi}/{controller}",
            "tree",
            controller,
            {
                "leaves": n, "saturate": True, "slo": "5ms", "age_limit": NO_LIMIT,
                **_cycles(psi),
            },
            settings=_BUFFERED_SETTINGS if controller == "full" else {},
            sets=("idle=hold",),
            costs=setup.costs,
            period_ns=period_ns,
            warmup_periods=warmup,
            periods=periods,
        )
        for n, psi in cells
        for controller in CONTROLLERS
    ]  # fmt: skip
    rows = [_row(n, psi, results) for n, psi in cells]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _cycles(psi: float) -> dict[str, int]:
    per_pkt = round(_PER_BATCH_CYCLES * psi / (1 - psi))
    return {
        f"{name}{leaf}": value
        for leaf in ("", "_0")
        for name, value in (("per_batch_cycles", _PER_BATCH_CYCLES), ("per_pkt_cycles", per_pkt))
    }


def _row(n: int, psi: float, results: Results) -> Row:
    rates = {name: results[f"{n}/{psi}/{name}"]["rate_pps"] for name in CONTROLLERS}
    return {
        "leaves": n,
        "batchiness": psi,
        **over_null(rates),
    }


def most_gain(leaves: int, psi: float, batch_pkts: int = 32) -> float:
    """What full batches gain over batches split at random, by the cost law alone."""
    branches_met = leaves * (1 - (1 - 1 / leaves) ** batch_pkts)  # by one batch, on average
    split = branches_met * (1 - psi) + batch_pkts * psi
    return split / ((1 - psi) + batch_pkts * psi)


def _name(row: Row) -> str:
    return f"{row['leaves']} leaves at {row['batchiness']}"


def claims(rows: list[Row]) -> list[Verdict]:
    """The paper's claims about figure 8a."""

    def speedups(key: str, is_in_regime: bool | None) -> dict[str, float]:
        return {
            _name(row): row[key]
            for row in rows
            if is_in_regime in (None, row["leaves"] >= 8 and row["batchiness"] < 0.5)
        }

    def limited(least: float, is_in_regime: bool) -> str:
        """How many of the values below `least` full batches could not bring there either."""
        names = [name for name, value in speedups("full_speedup", is_in_regime).items()
                 if value < least]  # fmt: skip
        most = {_name(row): most_gain(row["leaves"], row["batchiness"]) for row in rows}
        barred = {name: most[name] for name in names if most[name] < least}
        if not barred:
            return ""
        return (
            f"In {len(barred)} of {len(names)} even full batches gain less by the cost law alone "
            f"({span(barred, times)})."
        )

    return [
        in_range(
            "from 8 branches on and below 0.5: full is 1.5 to 4 times as fast as null",
            speedups("full_speedup", True), 1.5, 4.0, times,
        ).because(limited(1.5, True)),
        at_least("elsewhere 1.2 times", speedups("full_speedup", False), 1.2, times).because(
            limited(1.2, False)
        ),
        *nowhere_slower(rows, _name),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Two contour plots: full over null and optimal over null."""
    import numpy as np
    from matplotlib.colors import BoundaryNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    figure.suptitle(
        f"speed-up over null, tree of equal leaves ({setup.origin})\n"
        "paper: 1.5-4 x from 4-8 branches on below 0.5; 1.2 x elsewhere, never below 1",
        fontsize=11,
    )
    # No speed-up can exceed B. Anything more than 1 % slower than null shows as a darker patch.
    levels = [0.9, 0.99, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 32.0]
    norm = BoundaryNorm(levels, 256)
    for axis, name in zip(figure.subplots(1, 2, sharey=True), ("full", "optimal"), strict=True):
        grid = np.array([row[f"{name}_speedup"] for row in rows]).reshape(
            len(LEAVES), len(BATCHINESS)
        )
        drawn = axis.contourf(BATCHINESS, LEAVES, grid, levels=levels, cmap="viridis", norm=norm)
        lines = axis.contour(
            BATCHINESS, LEAVES, grid, levels=[1.2, 1.5], colors="white", linewidths=1
        )
        axis.clabel(lines, fmt="%.1f x", fontsize=8)
        axis.set_yscale("log", base=2)
        axis.set_yticks(LEAVES, [str(n) for n in LEAVES])
        axis.axvspan(0.2, 0.3, color="white", alpha=0.15, lw=0)
        axis.set_xlabel("batchiness (band: the papers' real modules)")
        axis.set_title(f"{name} / null", fontsize=10)
    figure.axes[0].set_ylabel("branches")
    figure.colorbar(drawn, ax=figure.axes[:2], ticks=levels)
    return figure


COLUMNS = (
    ("leaves", "branches", shown),
    ("batchiness", "batchiness", shown),
    ("null_rate_pps", "null", short_rate),
    ("full_rate_pps", "full", short_rate),
    ("optimal_rate_pps", "optimal", short_rate),
    ("full_speedup", "full / null", times),
    ("optimal_speedup", "optimal / null", times),
)

EXPERIMENT = Experiment(
    "fig8a", "speed-up by branches and batchiness (figure 8a)", plan, "fig8a", CONTROLLERS,
    "Cost modules behind a random split; 40 periods of 100 ms after 40 of warm-up.",
)  # fmt: skip
