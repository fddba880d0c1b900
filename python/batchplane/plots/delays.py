# SPDX-License-Identifier: BSD-3-Clause
"""delays.py - delays of flows against their SLOs: the distribution, and its tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.units import short_duration
from ..sim.result import Result
from .base import COLOURS, FAR, MAX_LINES, NS_PER_US, figure_of, left_packets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FINE_PER_OCTAVE = 32


def lower_bounds_ns(n_buckets: int) -> list[int]:
    """The smallest delay of each fine bucket: exact below 32 ns, then 32 buckets per octave."""
    bounds = []
    for i in range(n_buckets):
        shift = max(i // _FINE_PER_OCTAVE - 1, 0)
        bounds.append(i if i < _FINE_PER_OCTAVE else (_FINE_PER_OCTAVE + i % 32) << shift)
    return bounds


def _later_shares(row: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Delays in us, and the share of packets above each, from a flow's fine buckets."""
    counts = row["fine_buckets"]
    total = sum(counts)
    delays, shares, left = [], [], total
    bounds = lower_bounds_ns(len(counts) + 1)
    for i, count in enumerate(counts):
        if count:
            left -= count
            delays.append(bounds[i + 1] / NS_PER_US)
            shares.append(left / total)
    return delays, shares


def _recorded_shares(result: Result) -> dict[str, tuple[list[float], list[float]]]:
    """The same by flow, from the recorded packets."""
    packets = left_packets(result)
    if packets is None:
        return {}
    curves = {}
    for flow, chosen in packets.groupby("flow", observed=True):
        delays = sorted(chosen["delay_ns"])
        n = len(delays)
        curves[str(flow)] = ([d / NS_PER_US for d in delays], [1 - (i + 1) / n for i in range(n)])
    return curves


@dataclass(frozen=True)
class _Curve:
    name: str
    slo_ns: int
    pressure: float  # p99 over SLO
    delays_us: list[float]
    shares: list[float]


def _curves(result: Result) -> list[_Curve]:
    """A curve for each flow with packets, in order of p99 over SLO."""
    recorded: dict[str, tuple[list[float], list[float]]] | None = None
    curves = []
    for row in result.last["flows"]:
        if not row.get("pkts"):
            continue
        name, slo_ns = str(row["name"]), int(row.get("delay_slo_ns") or 0)
        if row.get("fine_buckets"):
            delays, shares = _later_shares(row)
        else:
            recorded = _recorded_shares(result) if recorded is None else recorded
            delays, shares = recorded.get(name, ([], []))
        p99 = (row.get("percentiles_ns") or {}).get("p99") or row.get("delay_max_ns") or 0
        if delays:
            pressure = p99 / slo_ns if slo_ns else -1.0
            curves.append(_Curve(name, slo_ns, pressure, delays, shares))
    return sorted(curves, key=lambda curve: -curve.pressure)


def delay_figure(result: Result) -> Figure | None:
    """Delay of each flow against its SLO: the distribution, and its tail on a logarithmic scale."""
    curves = _curves(result)
    if not curves:
        return None
    figure, (whole, tail) = figure_of(result, "delay of each flow, from entry to egress", 2)
    for i, curve in reversed(list(enumerate(curves))):
        style: dict[str, Any] = (
            {"color": COLOURS[i], "linewidth": 1.6, "label": curve.name, "zorder": 3}
            if i < MAX_LINES
            else {"color": "#bbbbbb", "linewidth": 0.8}
        )
        within = [1 - share for share in curve.shares]
        whole.step(curve.delays_us, within, where="post", **style)
        tail.step(curve.delays_us, curve.shares, where="post", **style)
    longest_us = max(curve.delays_us[-1] for curve in curves)
    promised = sorted({curve.slo_ns for curve in curves if curve.slo_ns})
    # An SLO far above every delay would squeeze the curves into a corner.
    slos = [slo_ns for slo_ns in promised if slo_ns / NS_PER_US < FAR * longest_us]
    far = [short_duration(slo_ns) for slo_ns in promised if slo_ns not in slos]
    if far:
        whole.set_title(f"SLO {', '.join(far)}: further to the right", fontsize=9)
    for axis in (whole, tail):
        axis.set_xscale("log")
        axis.set_xlabel("delay [us]")
        for slo_ns in slos:
            axis.axvline(slo_ns / NS_PER_US, color="black", linestyle="--", linewidth=1)
            axis.annotate(
                f"SLO {short_duration(slo_ns)}",
                (slo_ns / NS_PER_US, 0.98),
                xycoords=("data", "axes fraction"),
                rotation=90,
                ha="right",
                va="top",
                fontsize=8,
            )
        axis.set_xlim(right=max([longest_us, *(slo_ns / NS_PER_US for slo_ns in slos)]) * 1.3)
    whole.set_ylabel("share of packets within this delay")
    whole.set_ylim(0, 1.02)
    tail.set_ylabel("share of packets that take longer")
    tail.set_yscale("log")
    handles, labels = whole.get_legend_handles_labels()
    n = len(curves)
    title = None if n <= MAX_LINES else f"tightest {MAX_LINES} of {n} flows"
    whole.legend(handles[::-1], labels[::-1], fontsize=8, loc="lower right", title=title)
    return figure
