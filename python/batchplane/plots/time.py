# SPDX-License-Identifier: BSD-3-Clause
"""time.py - the parts of the packets' delays: ring, turnaround, fill, service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sim.result import Result
from .base import MAX_BARS, NS_PER_US, figure_of, left_packets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

# In the order of every legend, so that you can tell them apart without colours.
PARTS = (
    ("ring_ns", "ring: waits for the poll", "#4477aa"),
    ("turnaround_ns", "turnaround: other batches first", "#ccbb44"),
    ("fill_ns", "fill: waits in buffers", "#ee6677"),
    ("service_ns", "service: its own batches run", "#228833"),
)
_BANDS = ((0.0, 0.5, "fastest half"), (0.5, 0.95, "p50 - p95"), (0.95, 0.99, "p95 - p99"),
          (0.99, 1.0, "slowest 1 %"))  # fmt: skip


def time_figure(result: Result) -> Figure | None:
    """Ring, turnaround, fill and service: mean of each flow, and of fast and slow packets."""
    packets = left_packets(result)
    if packets is None or packets.empty:
        return None
    figure, (by_flow, by_band) = figure_of(result, "where each packet's time went", 2)
    columns = [column for column, _, _ in PARTS]
    means = packets.groupby("flow", observed=True)[[*columns, "delay_ns"]].mean()
    _stacked(by_flow, means.nlargest(MAX_BARS, "delay_ns"), f"mean of {len(packets)} packets")
    ranks = packets["delay_ns"].rank(pct=True, method="first")
    bands = {}
    for low, high, label in _BANDS:
        chosen = packets[(ranks > low) & (ranks <= high)]
        if not chosen.empty:
            bands[label] = chosen[columns].mean()
    import pandas as pd

    _stacked(by_band, pd.DataFrame(bands).T, "all flows, by delay")
    by_band.legend(fontsize=8, loc="best")
    return figure


def _stacked(axis: Axes, means: DataFrame, title: str) -> None:
    import numpy as np

    left = np.zeros(len(means))
    places = np.arange(len(means))
    for column, label, colour in PARTS:
        width = means[column].to_numpy() / NS_PER_US
        axis.barh(places, width, left=left, color=colour, label=label)
        left += width
    axis.set_yticks(places, [str(name) for name in means.index], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("time [us]")
    axis.set_title(title, fontsize=9)
