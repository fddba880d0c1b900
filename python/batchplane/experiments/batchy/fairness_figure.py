# SPDX-License-Identifier: BSD-3-Clause
"""fairness_figure.py - shares, delays behind a heavy flow, and late drops, by factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...plots.base import COLOURS, legend_below
from ..common.experiment import Row, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_panels(rows: Sequence[Row], setup: Setup) -> Figure:
    """Two panels of shares, two of delays, one of drops, one of the cost of scheduling."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 7.6), layout="constrained")
    figure.suptitle(
        f"who gets the core, and who waits behind whom ({setup.origin})\n"
        "paper (in words): run to completion is rate-proportional, drops nothing within and "
        "blocks nobody",
        fontsize=11,
    )
    axes = figure.subplots(2, 3)
    modes = list(dict.fromkeys(row["mode"] for row in rows))

    def lines(axis: Any, value: Callable[[Row], float], wanted: Callable[[Row], bool]) -> None:
        for c, mode in enumerate(modes):
            mine = [row for row in rows if row["mode"] == mode and wanted(row)]
            axis.plot(
                [row["factor"] for row in mine], [value(row) for row in mine], "o-",
                color=COLOURS[c], label=mode, markersize=9 - 1.5 * c, linewidth=1.2,
            )  # fmt: skip
        axis.set_xscale("log", base=2)
        factors = sorted({row["factor"] for row in rows})
        axis.set_xticks(factors, [str(f) for f in factors])
        axis.minorticks_off()
        axis.grid(True, color="#dddddd", linewidth=0.6)

    for axis, what in zip(axes[0], ("rate", "cost"), strict=False):
        lines(axis, lambda row: row["proportion"], lambda row, what=what: row["part"] == what)  # type: ignore[misc]
        axis.set_title(
            f"one function {'gets' if what == 'rate' else 'costs'} so many times the other",
            fontsize=10,
        )
        axis.set_ylabel("delivered ratio / offered ratio")
        axis.set_ylim(bottom=0)
    lines(axes[0][2], lambda row: 100 * row["late_drops"], _at("behind", 0.0))
    axes[0][2].set_title("shared function, then light and heavy: full load", fontsize=10)
    axes[0][2].set_ylabel("dropped after work on it [%]")
    for axis, load in zip(axes[1], (0.5, 0.9), strict=False):
        lines(axis, lambda row: row["light_delay_ns"] / 1e3, _at("behind", load))
        axis.set_title(f"the same at {load:.0%} load", fontsize=10)
        axis.set_ylabel("mean delay of the light flow [us]")
        axis.set_xlabel("times that the heavy function costs")
        axis.set_ylim(bottom=0)
    last = axes[1][2]
    chain = [row for row in rows if row["part"] == "chain"]
    last.bar(
        range(len(chain)), [row["rate_pps"] / 1e6 for row in chain], color=COLOURS[: len(chain)]
    )
    last.set_xticks(
        range(len(chain)), [row["mode"].replace(" ", "\n") for row in chain], fontsize=7
    )
    last.set_ylabel("rate [Mpps]")
    last.set_title("four equal functions in a chain, full load", fontsize=10)
    legend_below(figure, axes[0][0])
    return figure


def _at(part: str, load: float) -> Callable[[Row], bool]:
    return lambda row: row["part"] == part and row["load"] == load
