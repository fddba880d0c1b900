# SPDX-License-Identifier: BSD-3-Clause
"""control.py - batch sizes, and triggers, rate and delay over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..show.rates import buffer_list, family
from ..sim.result import Result
from .base import COLOURS, MAX_BARS, MAX_LINES, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

_CAUSES = {"full": "#228833", "age": "#ee6677", "idle": "#66ccee", "change": "#ccbb44"}


def _shown_modules(result: Result) -> DataFrame:
    """The busiest modules that a controller may set, or that have buffers if there are none."""
    controlled = {str(m["name"]) for m in result.model["modules"] if m.get("is_controlled")}
    named = controlled or {str(row["module"]) for row in buffer_list(result.last)}
    frame = result.modules
    frame = frame.loc[[name for name in frame.index if name in named]]
    busiest = frame[frame["pkts"] > 0].nlargest(MAX_BARS, "pkts", keep="first")
    return frame.loc[[name for name in frame.index if name in busiest.index]]


def batch_figure(result: Result) -> Figure | None:
    """Mean batch of each module and its trigger, and the sizes of single firings by cause."""
    modules = _shown_modules(result)
    if modules.empty:
        return None
    firings = result.firings
    has_firings = firings is not None and not firings.empty
    figure, axes = figure_of(result, "batch sizes", 2 if has_firings else 1)
    places = range(len(modules))
    bars, sizes = axes[0], axes[-1]
    bars.barh(places, modules["batch_mean_pkts"].fillna(0.0), color="#4477aa", label="mean batch")
    triggers = modules["trigger_pkts"].fillna(0)
    if triggers.any():
        bars.plot(triggers, places, "|", color="black", markersize=11, label="trigger at the end")
    bars.set_yticks(list(places), [str(name) for name in modules.index], fontsize=7)
    bars.invert_yaxis()
    bars.set_xlabel("packets")
    bars.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    if has_firings and firings is not None:
        _firing_sizes(sizes, firings, int(result.model["batch_limit_pkts"]))
    return figure


def _firing_sizes(axis: Axes, firings: DataFrame, batch_limit_pkts: int) -> None:
    import numpy as np

    bottom = np.zeros(batch_limit_pkts + 1)
    for cause, chosen in firings.groupby("cause", observed=True):
        name = str(cause)
        counts = np.bincount(chosen["batch_pkts"], minlength=len(bottom))[: len(bottom)]
        axis.bar(
            np.arange(len(bottom)),
            counts,
            bottom=bottom,
            width=1.0,
            color=_CAUSES.get(name, "#bbbbbb"),
            label=name,
        )
        bottom += counts
    axis.set_xlabel("packets in the batch")
    axis.set_ylabel(f"firings ({len(firings)} recorded)")
    axis.set_xlim(0.5, batch_limit_pkts + 0.5)
    axis.legend(fontsize=8, title="cause")


def _families(names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(family(name), []).append(name)
    for label, members in groups.items():
        yield (label if len(members) > 1 else members[0]), members


def trigger_figure(result: Result) -> Figure | None:
    """Triggers, rate, and delay relative to the SLO, by period."""
    frame, flows, periods = result.module_periods, result.flow_periods, result.periods
    if periods.empty:
        return None
    figure, (top, middle, low) = figure_of(result, "triggers, rate and delay over time", 1, 3)
    controlled = [str(m["name"]) for m in result.model["modules"] if m.get("is_controlled")]
    wide = frame.pivot_table(
        index="time_ns", columns="module", values="trigger_pkts", observed=True
    )
    for i, (label, members) in enumerate(_families([n for n in controlled if n in wide])):
        colour = COLOURS[i % MAX_LINES]
        chosen = wide[members]
        at_ms = [time_ns / 1e6 for time_ns in wide.index]
        top.step(at_ms, chosen.mean(axis=1), where="pre", color=colour, label=label)
        if len(members) > 1:
            top.fill_between(
                at_ms, chosen.min(axis=1), chosen.max(axis=1), step="pre", alpha=0.2,
                color=colour, linewidth=0,
            )  # fmt: skip
    top.set_ylabel("trigger [packets]\nmean, least, largest")
    top.set_ylim(-0.5, result.model["batch_limit_pkts"] + 1)
    if top.lines:
        top.legend(fontsize=8, loc="upper right", ncols=2)
    times_ms = periods["time_ns"] / 1e6
    for column, colour, label in (("in_pps", "#4477aa", "in"), ("out_pps", "#228833", "out")):
        middle.plot(times_ms, periods[column] / 1e6, color=colour, label=label, linewidth=1.2)
    middle.set_ylabel("rate [Mpps]")
    middle.set_ylim(bottom=0)
    middle.legend(fontsize=8, loc="lower right")
    _delay_ratio(low, flows, result.percentile)
    low.set_xlabel("time [ms]")
    for axis in (top, middle, low):
        for text in result.events:
            axis.axvline(float(text.split(" s:")[0]) * 1e3, color="#999999", linewidth=0.8)
    return figure


def _delay_ratio(axis: Axes, flows: DataFrame, percentile: float) -> None:
    """Delay over SLO, for the flows that come closest to theirs."""
    promised = flows[(flows["slo_ns"] > 0) & (flows["pkts"] > 0)]
    name = {0.0: "mean", 1.0: "longest"}.get(percentile, f"p{percentile * 100:g}")
    axis.set_ylabel(f"{name} delay / SLO")
    if promised.empty:
        axis.text(0.5, 0.5, "no flow has an SLO", transform=axis.transAxes, ha="center")
        return
    promised = promised.assign(ratio=promised["delay_ns"] / promised["slo_ns"])
    worst = promised.groupby("flow", observed=True)["ratio"].quantile(0.95)
    for i, flow in enumerate(worst.nlargest(4).index):
        rows = promised[promised["flow"] == flow]
        axis.plot(
            rows["time_ns"] / 1e6, rows["ratio"], color=COLOURS[i], label=str(flow), linewidth=1
        )
    axis.axhline(1.0, color="black", linestyle="--", linewidth=1)
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8, loc="upper right", ncols=2)
