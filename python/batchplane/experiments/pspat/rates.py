# SPDX-License-Identifier: BSD-3-Clause
"""rates.py - measured rates in rows, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.percentile import percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A slow moment of the machine does not mean a slow scheduler: the best tenth of the trials counts.
RATE_COLUMNS = (
    ("mpps", "Mpps, best tenth", lambda v: f"{v:.1f}"),
    ("p50_mpps", "median", lambda v: f"{v:.1f}"),
)


def rate_cells(trials_mpps: list[float]) -> dict[str, float]:
    """The table cells for trials of one kind."""
    ordered = sorted(trials_mpps)
    return {"mpps": percentile(ordered, 0.9), "p50_mpps": percentile(ordered, 0.5)}


def finish_rates(axis: Axes, xlabel: str) -> None:
    """Adds labels and a legend; the axis of rates starts at 0."""
    axis.set_xlabel(xlabel)
    axis.set_ylabel("million packets a second")
    axis.set_ylim(bottom=0)
    axis.grid(True, color="#dddddd", linewidth=0.6)
    axis.legend(fontsize=8)
