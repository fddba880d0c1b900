# SPDX-License-Identifier: BSD-3-Clause
"""table2_figure.py - figure 7: batch size, rate and violations of selected pipelines, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...plots.base import COLOURS, legend_below
from ..common.experiment import Row, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SELECTED = (
    "L2L3(16)", "*L2L3(16)", "GW(16)", "*GW(16)", "GW(64)", "VRF(2,4)", "VRF(16,4)", "MGW(4,4)",
    "MGW(16,4)", "RC(16)",
)  # fmt: skip
_PANELS = (
    ("batch_mean_pkts", 1.0, "mean batch [packets]", "paper: full at 70-80 % of max (band)"),
    ("rate_pps", 1e6, "rate [Mpps]", "paper: full at 1.5-2.5 x null (band; RC: from 7.5 x)"),
    ("violated_ratio", 0.01, "violated periods [%]", "paper: full at most 9 % (line)"),
)


def draw_bars(rows: Sequence[Row], setup: Setup) -> Figure:
    """Three panels, with the paper's claims as bands and lines."""
    from matplotlib.figure import Figure

    by = {(row["pipeline"], row["controller"]): row for row in rows}
    pipelines = [name for name in SELECTED if (name, "null") in by]
    controllers = [c for c in dict.fromkeys(row["controller"] for row in rows) if "delta" not in c]
    figure = Figure(figsize=(12.5, 9.0), layout="constrained")
    figure.suptitle(f"static pipelines at full load, SLO = 80 % of max's p95 ({setup.origin})")
    width = 0.8 / max(len(controllers), 1)
    for axis, (key, unit, label, claim) in zip(figure.subplots(3, 1), _PANELS, strict=True):
        for c, controller in enumerate(controllers):
            places = [i + (c - (len(controllers) - 1) / 2) * width for i in range(len(pipelines))]
            values = [(by[name, controller][key] or 0.0) / unit for name in pipelines]
            axis.bar(places, values, width, color=COLOURS[c % len(COLOURS)], label=controller)
        for i, name in enumerate(pipelines):
            low, high = _claimed(key, by[name, "null"], by[name, "max"], name)
            if high > low:
                axis.fill_between(
                    [i - 0.45, i + 0.45], low / unit, high / unit, color="black", alpha=0.12, lw=0
                )
        if key == "violated_ratio":
            axis.axhline(9.0, color="black", linestyle="--", linewidth=1)
        axis.set_xticks(range(len(pipelines)), pipelines)
        axis.set_ylabel(label)
        axis.set_title(claim, fontsize=9, loc="right")
        axis.grid(True, axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    legend_below(figure, figure.axes[0])
    return figure


def _claimed(key: str, null: Row, most: Row, name: str) -> tuple[float, float]:
    """The range that the paper claims for `full`, based on our `null` and `max`."""
    if key == "batch_mean_pkts":
        return 0.7 * most[key], 0.8 * most[key]
    if key == "rate_pps":
        return (7.3 * null[key], 7.7 * null[key]) if name == "RC(16)" else (
            1.5 * null[key], 2.5 * null[key]
        )  # fmt: skip
    return 0.0, 0.0
