# SPDX-License-Identifier: BSD-3-Clause
"""plot.py - the figure of a plan: rate against SLO, with the given SLOs marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.units import short_duration, short_rate
from ..plots.base import COLOURS
from .links import PlanRow, limit_words, tightest
from .planning import Report, keeps, missed_flows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELS = {"null": "no buffers", "max": "full batches"}


def draw_plan(report: Report) -> Figure:
    """One panel; lines are dotted where an SLO is not met."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = Figure(figsize=(7.6, 4.8), layout="constrained")
    axis = figure.add_subplot()
    unit_ns, label = _unit(report)
    points = sorted(report.curve)
    x = [factor * unit_ns for factor, _ in points]
    for i, baseline in enumerate(report.baselines):
        _draw_baseline(axis, baseline, x, unit_ns, COLOURS[(i + 1) % len(COLOURS)])
    y = [plan["rate_pps"] / 1e6 for _, plan in points]
    kept = [not missed_flows(plan) for _, plan in points]
    _draw_parts(axis, x, y, kept, COLOURS[0], 2.2)
    axis.plot([], [], color=COLOURS[0], linewidth=2.2, label="planned triggers")
    if not all(kept):
        axis.plot([], [], ":", color="#555555", label="dotted: an SLO is not kept")
    tight = tightest(report.plan)
    if tight is not None and tight["most_pps"] <= 1.5 * report.plan["rate_pps"]:
        axis.axhline(
            tight["most_pps"] / 1e6, color="#555555", linewidth=1.0, linestyle="-.",
            label=f"what {limit_words(tight)} carries", zorder=1,
        )  # fmt: skip
    rate = report.plan["rate_pps"] / 1e6
    axis.plot([unit_ns], [rate], "o", color=COLOURS[0], markersize=9, markeredgecolor="white")
    axis.axvline(unit_ns, color="#999999", linewidth=0.8, linestyle="--", zorder=0)
    axis.annotate(
        f"{short_rate(report.plan['rate_pps'])}\nat {_at(unit_ns)}",
        (unit_ns, rate), xytext=(10, -14), textcoords="offset points", fontsize=9, va="top",
    )  # fmt: skip
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_minor_formatter(NullFormatter())
    if unit_ns > 1:
        axis.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: short_duration(ns)))
    else:
        axis.xaxis.set_major_formatter(FuncFormatter(lambda factor, _: f"{factor:g}"))
    axis.set_xlim(min(x), max(x))
    axis.set_ylim(0, 1.06 * axis.get_ylim()[1])
    axis.set_xlabel(label)
    axis.set_ylabel("rate of one core [Mpps]")
    axis.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.legend(fontsize=9, loc="lower right")
    figure.suptitle(f"{report.name}: rate against SLO (planned)", fontsize=12)
    return figure


def _unit(report: Report) -> tuple[float, str]:
    """The SLO factor 1 in ns, and the label of the axis."""
    times = {ns for ns in report.slo_ns.values() if ns}
    if len(times) == 1:
        return float(times.pop()), f"SLO (p{report.percentile * 100:g})"
    return 1.0, "SLOs, as parts of those asked for"


def _at(unit_ns: float) -> str:
    return short_duration(unit_ns) if unit_ns > 1 else "the SLOs asked for"


def _draw_baseline(axis: Axes, plan: PlanRow, x: list[float], unit_ns: float, colour: str) -> None:
    """The rate of a controller that ignores SLOs: dotted where its delays exceed them."""
    rate = plan["rate_pps"] / 1e6
    kept = [keeps(plan, at / unit_ns) for at in x]
    _draw_parts(axis, x, [rate] * len(x), kept, colour, 1.4)
    axis.plot([], [], color=colour, linewidth=1.4, label=_LABELS[plan["controller"]])


def _draw_parts(
    axis: Axes, x: list[float], y: list[float], kept: list[bool], colour: str, width: float
) -> None:
    for i in range(len(x) - 1):
        style = "-" if kept[i] else ":"
        axis.plot(x[i : i + 2], y[i : i + 2], style, color=colour, linewidth=width)
