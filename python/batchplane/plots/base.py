# SPDX-License-Identifier: BSD-3-Clause
"""base.py - common parts of figures: sizes, colours, titles, and how they are saved.

Every figure states its origin, `simulated` or `measured`. matplotlib is loaded when needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..base.problems import RunFailed
from ..sim.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb5500", "#555555")
MAX_LINES = len(COLOURS)
MAX_BARS = 24
NS_PER_US = 1e3
# A value this many times the others would squeeze them into a corner.
FAR = 10.0


def figure_of(result: Result, what: str, columns: int, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with a title and a grid of axes."""
    from matplotlib.figure import Figure

    size = (6.4 * columns, 4.6) if rows == 1 else (10.0, 3.0 * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    text = f"{result.pipeline}, {result.controller}: {what} ({result.label})"
    figure.suptitle(text, fontsize=12)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]
    for axis in axes:
        axis.grid(True, color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def legend_below(figure: Figure, labelled: Axes) -> None:
    """The legend of one axis, below all panels, so that it covers no line."""
    handles, labels = labelled.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=len(labels))


def save(figure: Figure, path: Path) -> None:
    """Writes a PNG file. Raises RunFailed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise RunFailed(f"{path} cannot be written: {error.strerror or error}") from error


def left_packets(result: Result) -> DataFrame | None:
    """Recorded packets that reached the end of their path, with their delay."""
    packets = result.packets
    if packets is None:
        return None
    packets = packets[packets["exit_ns"] > 0]
    return packets.assign(delay_ns=packets["exit_ns"] - packets["entry_ns"])
