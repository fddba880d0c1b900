# SPDX-License-Identifier: BSD-3-Clause
"""sim_plots.py - figures of simulated runs: delays, batch sizes, triggers, where the time went.

Every figure says `simulated`, the pipeline and the controller. matplotlib is loaded when needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .problems import RunFailed
from .rates import buffer_list, family
from .sim_result import Result
from .units import short_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Told apart also without colours, by their order in every legend.
PARTS = (
    ("ring_ns", "ring: waits for the poll", "#4477aa"),
    ("turnaround_ns", "turnaround: other batches first", "#ccbb44"),
    ("fill_ns", "fill: waits in buffers", "#ee6677"),
    ("service_ns", "service: its own batches run", "#228833"),
)
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb5500", "#555555")
_CAUSES = {"full": "#228833", "age": "#ee6677", "idle": "#66ccee", "change": "#ccbb44"}
_MOST_LINES = len(_COLOURS)
_MOST_BARS = 24
_US = 1e3
_FINE_PER_OCTAVE = 32
_FAR = 10.0


def write_plots(result: Result, folder: Path) -> list[Path]:
    """All figures of one run as PNG files; returns their paths."""
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
            _save(figure, folder / f"{stem}_{name}.png")
            written.append(folder / f"{stem}_{name}.png")
    return written


def write_comparison(
    rows: Sequence[dict[str, Any]], pipeline: str, label: str, folder: Path
) -> Path:
    """One figure of all controllers: rate, and the tightest flow's p99 against its SLO."""
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
    if max(ratios, default=0.0) > _FAR:
        right.set_xscale("log")
    path = folder / "comparison.png"
    _save(figure, path)
    return path


def _save(figure: Figure, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise RunFailed(f"{path} cannot be written: {error.strerror or error}") from error


def _figure(result: Result, what: str, columns: int, rows: int = 1) -> tuple[Figure, list[Axes]]:
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


# --- delays ---------------------------------------------------------------------------------------


def lower_bounds_ns(n_buckets: int) -> list[int]:
    """The smallest delay of each fine bucket: exact below 32 ns, then 32 an octave."""
    bounds = []
    for i in range(n_buckets):
        shift = max(i // _FINE_PER_OCTAVE - 1, 0)
        bounds.append(i if i < _FINE_PER_OCTAVE else (_FINE_PER_OCTAVE + i % 32) << shift)
    return bounds


def _later_shares(row: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Delays in us, and the share of packets that took longer, of one flow of `show flows`."""
    counts = row.get("fine_buckets") or []
    total = sum(counts)
    delays, shares, left = [], [], total
    bounds = lower_bounds_ns(len(counts) + 1)
    for i, count in enumerate(counts):
        if count:
            left -= count
            delays.append(bounds[i + 1] / _US)
            shares.append(left / total)
    return delays, shares


def _flows_by_tightness(result: Result) -> list[dict[str, Any]]:
    """Flows with packets; those first whose p99 comes nearest to their SLO."""

    def pressure(row: dict[str, Any]) -> float:
        slo_ns = row.get("delay_slo_ns") or 0
        p99 = (row.get("percentiles_ns") or {}).get("p99") or row.get("delay_max_ns") or 0
        return -(p99 / slo_ns) if slo_ns else 1.0

    rows = [row for row in result.last["flows"] if row.get("pkts") and row.get("fine_buckets")]
    return sorted(rows, key=pressure)


def delay_figure(result: Result) -> Figure | None:
    """Delay of each flow against its SLO: the distribution, and its tail on a logarithmic scale."""
    rows = _flows_by_tightness(result)
    if not rows:
        return None
    figure, (whole, tail) = _figure(result, "delay of each flow, from entry to egress", 2)
    for i, row in reversed(list(enumerate(rows))):
        delays, shares = _later_shares(row)
        is_named = i < _MOST_LINES
        style: dict[str, Any] = (
            {"color": _COLOURS[i], "linewidth": 1.6, "label": str(row["name"]), "zorder": 3}
            if is_named
            else {"color": "#bbbbbb", "linewidth": 0.8}
        )
        whole.step(delays, [1 - share for share in shares], where="post", **style)
        tail.step(delays, shares, where="post", **style)
    longest_us = max(max(_later_shares(row)[0]) for row in rows)
    promised = sorted({row["delay_slo_ns"] for row in rows if row.get("delay_slo_ns")})
    # A promise far beyond every delay would press the curves into a corner.
    slos = [slo_ns for slo_ns in promised if slo_ns / _US < _FAR * longest_us]
    far = [short_duration(slo_ns) for slo_ns in promised if slo_ns not in slos]
    if far:
        whole.set_title(f"SLO {', '.join(far)}: further to the right", fontsize=9)
    for axis in (whole, tail):
        axis.set_xscale("log")
        axis.set_xlabel("delay [us]")
        for slo_ns in slos:
            axis.axvline(slo_ns / _US, color="black", linestyle="--", linewidth=1)
            axis.annotate(
                f"SLO {short_duration(slo_ns)}",
                (slo_ns / _US, 0.98),
                xycoords=("data", "axes fraction"),
                rotation=90,
                ha="right",
                va="top",
                fontsize=8,
            )
        axis.set_xlim(right=max([longest_us, *(slo_ns / _US for slo_ns in slos)]) * 1.3)
    whole.set_ylabel("share of packets within this delay")
    whole.set_ylim(0, 1.02)
    tail.set_ylabel("share of packets that take longer")
    tail.set_yscale("log")
    handles, labels = whole.get_legend_handles_labels()
    title = None if len(rows) <= _MOST_LINES else f"tightest {_MOST_LINES} of {len(rows)} flows"
    whole.legend(handles[::-1], labels[::-1], fontsize=8, loc="lower right", title=title)
    return figure


# --- batches --------------------------------------------------------------------------------------


def _shown_modules(result: Result) -> DataFrame:
    """The modules that a controller may set, or all that have buffers; the busiest of them."""
    controlled = {str(m["name"]) for m in result.model["modules"] if m.get("is_controlled")}
    named = controlled or {str(row["module"]) for row in buffer_list(result.last)}
    frame = result.modules
    frame = frame.loc[[name for name in frame.index if name in named]]
    return frame[frame["pkts"] > 0].nlargest(_MOST_BARS, "pkts", keep="first").sort_index()


def batch_figure(result: Result) -> Figure | None:
    """Mean batch of each module against its trigger, and the sizes of single firings by cause."""
    modules = _shown_modules(result)
    if modules.empty:
        return None
    firings = result.firings
    has_firings = firings is not None and not firings.empty
    figure, axes = _figure(result, "batch sizes", 2 if has_firings else 1)
    places = range(len(modules))
    bars, sizes = axes[0], axes[-1]
    bars.barh(places, modules["batch_mean_pkts"].fillna(0.0), color="#4477aa", label="mean batch")
    triggers = modules["trigger_pkts"].fillna(0)
    if triggers.any():
        bars.plot(triggers, places, "|", color="black", markersize=11, label="trigger at the end")
    bars.set_yticks(list(places), [str(name) for name in modules.index], fontsize=7)
    bars.invert_yaxis()
    bars.set_xlabel("packets")
    bars.legend(fontsize=8)
    if has_firings and firings is not None:
        _firing_sizes(sizes, firings, int(result.model["batch_limit_pkts"]))
    return figure


def _firing_sizes(axis: Axes, firings: DataFrame, batch_limit_pkts: int) -> None:
    import numpy as np

    bottom = np.zeros(batch_limit_pkts + 1)
    names = list(_CAUSES)
    for cause, chosen in firings.groupby("cause", observed=True):
        name = names[int(cause)] if isinstance(cause, (int, np.integer)) else str(cause)
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
    axis.set_ylabel(f"firings, of the first {len(firings)}")
    axis.set_xlim(0.5, batch_limit_pkts + 0.5)
    axis.legend(fontsize=8, title="cause")


# --- over time ------------------------------------------------------------------------------------


def _families(names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(family(name), []).append(name)
    for label, members in groups.items():
        yield (label if len(members) > 1 else members[0]), members


def trigger_figure(result: Result) -> Figure | None:
    """Triggers, the rate and the delay against the SLO, period by period."""
    frame, flows, periods = result.module_periods, result.flow_periods, result.periods
    if periods.empty:
        return None
    figure, (top, middle, low) = _figure(result, "triggers, rate and delay over time", 1, 3)
    controlled = [str(m["name"]) for m in result.model["modules"] if m.get("is_controlled")]
    wide = frame.pivot_table(
        index="time_ns", columns="module", values="trigger_pkts", observed=True
    )
    for i, (label, members) in enumerate(_families([n for n in controlled if n in wide])):
        colour = _COLOURS[i % _MOST_LINES]
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
    """Delay over SLO of the flows that come nearest to theirs."""
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
            rows["time_ns"] / 1e6, rows["ratio"], color=_COLOURS[i], label=str(flow), linewidth=1
        )
    axis.axhline(1.0, color="black", linestyle="--", linewidth=1)
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8, loc="upper right", ncols=2)


# --- where the time went --------------------------------------------------------------------------

_BANDS = ((0.0, 0.5, "fastest half"), (0.5, 0.95, "p50 - p95"), (0.95, 0.99, "p95 - p99"),
          (0.99, 1.0, "slowest 1 %"))  # fmt: skip


def time_figure(result: Result) -> Figure | None:
    """Ring, turnaround, fill and service: mean of each flow, and of fast and slow packets."""
    packets = result.packets
    if packets is None or packets.empty:
        return None
    figure, (by_flow, by_band) = _figure(result, "where each packet's time went", 2)
    columns = [column for column, _, _ in PARTS]
    packets = packets.assign(delay_ns=packets["exit_ns"] - packets["entry_ns"])
    means = packets.groupby("flow", observed=True)[[*columns, "delay_ns"]].mean()
    _stacked(by_flow, means.nlargest(_MOST_BARS, "delay_ns"), f"mean of {len(packets)} packets")
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
        width = means[column].to_numpy() / _US
        axis.barh(places, width, left=left, color=colour, label=label)
        left += width
    axis.set_yticks(places, [str(name) for name in means.index], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("time [us]")
    axis.set_title(title, fontsize=9)
