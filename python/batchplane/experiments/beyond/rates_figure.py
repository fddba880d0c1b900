# SPDX-License-Identifier: BSD-3-Clause
"""rates_figure.py - bars of our rates by controller, with lines for the original's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...base.units import short_duration
from ...plots.base import COLOURS
from ..common.experiment import Row, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_bars(rows: Sequence[Row], setup: Setup) -> Figure:
    """Left: the original's SLOs; right: 80 % of max's delay."""
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(row["slo"] for row in rows))
    figure = Figure(figsize=(12.0, 4.8), layout="constrained")
    figure.suptitle(f"rates; black lines: the original's ({setup.origin})", fontsize=10)
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    controllers = list(dict.fromkeys(row["controller"] for row in rows))
    for panel, kind in zip(panels, kinds, strict=True):
        mine = [row for row in rows if row["slo"] == kind]
        pipelines = list(dict.fromkeys((row["pipeline"], row["slo_ns"]) for row in mine))
        width = 0.8 / len(controllers)
        for row in mine:
            i = pipelines.index((row["pipeline"], row["slo_ns"]))
            c = controllers.index(row["controller"])
            place = i + (c - (len(controllers) - 1) / 2) * width
            panel.bar(place, row["rate_pps"] / 1e6, width, color=COLOURS[c % len(COLOURS)])
            if row["original_pps"] is not None:
                y = row["original_pps"] / 1e6
                panel.plot([place - width / 2, place + width / 2], [y, y], "-", color="black")
        names = [f"{name}\n{short_duration(slo_ns)}" for name, slo_ns in pipelines]
        panel.set_xticks(range(len(pipelines)), names)
        panel.set_title(f"at {kind} SLO" if "original" in kind else f"at {kind} delay", fontsize=10)
        panel.set_ylabel("rate [Mpps]")
        panel.grid(True, axis="y", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    for c, controller in enumerate(controllers):
        panels[0].bar(0, 0, color=COLOURS[c % len(COLOURS)], label=controller)
    panels[0].legend(fontsize=8)
    return figure
