# SPDX-License-Identifier: BSD-3-Clause
"""files.py - saves figures of simulated runs: a set for each run, and a comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..sim.result import Result
from .base import FAR, save
from .control import batch_figure, trigger_figure
from .delays import delay_figure
from .time import time_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_plots(result: Result, folder: Path) -> list[Path]:
    """Writes all figures of a run as PNG files; returns their paths."""
    stem = re.sub(r"[^A-Za-z0-9.+-]+", "_", Path(result.controller).stem).strip("_")
    stem = f"{stem}_seed{result.seed}" if result.seed != 1 else stem
    written = []
    figures: tuple[tuple[str, Callable[[Result], Figure | None]], ...] = (
        ("delays", delay_figure),
        ("batches", batch_figure),
        ("triggers", trigger_figure),
        ("time", time_figure),
    )
    for name, draw in figures:
        figure = draw(result)
        if figure is not None:
            save(figure, folder / f"{stem}_{name}.png")
            written.append(folder / f"{stem}_{name}.png")
    return written


def write_comparison(
    rows: Sequence[dict[str, Any]], pipeline: str, label: str, folder: Path
) -> Path:
    """One figure of all controllers: rate, and the tightest flow's p99 relative to its SLO."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 1.6 + 0.4 * len(rows)), layout="constrained")
    figure.suptitle(f"{pipeline}: controllers ({label})", fontsize=12)
    left, right = figure.subplots(1, 2, sharey=True)
    places = list(range(len(rows)))
    rates = [row["rate_pps"] / 1e6 for row in rows]
    spread = [(row["rate_sd_pps"] or 0.0) / 1e6 for row in rows]
    left.barh(places, rates, xerr=spread, color="#4477aa", ecolor="black", capsize=3)
    for place, rate in zip(places, rates, strict=True):
        left.annotate(f" {rate:.3g}", (0, place), va="center", color="white", fontsize=9)
    left.set_yticks(places, [row["controller"] for row in rows])
    left.invert_yaxis()
    left.set_xlabel("rate [Mpps]")
    ratios = [
        row["worst_p99_ns"] / row["worst_slo_ns"] if row["worst_p99_ns"] else 0.0 for row in rows
    ]
    colours = ["#ee6677" if ratio > 1 else "#228833" for ratio in ratios]
    right.barh(places, ratios, color=colours)
    right.axvline(1.0, color="black", linestyle="--", linewidth=1)
    right.set_xlabel("p99 of the tightest flow / its SLO")
    if max(ratios, default=0.0) > FAR:
        right.set_xscale("log")
    path = folder / "comparison.png"
    save(figure, path)
    return path
