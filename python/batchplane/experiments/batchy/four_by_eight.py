# SPDX-License-Identifier: BSD-3-Clause
"""four_by_eight.py - 4 virtual routers with gateways to 8 next hops each, over time (figure 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ...plots.base import COLOURS, legend_below
from ..common.case import NO_LIMIT, Case
from ..common.experiment import Row, Setup, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODULE, FLOW = "acl_0_0", "flow_0_0"
# A change shows in its own period, and while packets that were held before it leave.
TRANSIENT_PERIODS = 3


def make_case(setup: Setup, controller: str, events: str, length: int, **more: Any) -> Case:
    """The pipeline under a controller for `length` periods, with events."""
    params = {
        "branches": 4, "nexthops": 8, "fib_size": 1000, "age_limit": NO_LIMIT,
        **more.pop("params", {}),
    }  # fmt: skip
    sets = ("idle=hold", *more.pop("sets", ()))
    return Case(
        controller,
        "gateway",
        controller,
        params,
        sets=sets,
        events=events,
        costs=setup.costs,
        periods=length,
        watched_module=MODULE,
        watched_flow=FLOW,
        **more,
    )


def time_line(words: Sequence[str], step_ns: int) -> str:
    """A scenario that applies one setting after the other; the first is set before the start."""
    lines = [f"  - {{at: {i * step_ns}ns, set: '{word}'}}" for i, word in enumerate(words)]
    return "events:\n" + "\n".join(lines[1:]) + "\n"


def settled(series: dict[str, list[Any]], step_ns: int, steps: int, period_ns: int) -> list[int]:
    """The numbers of the periods that are not right after a change."""
    chosen = []
    for i, end_ns in enumerate(series["time_ns"]):
        step = min((end_ns - 1) // step_ns, steps - 1)
        if end_ns - step * step_ns > TRANSIENT_PERIODS * period_ns:
            chosen.append(i)
    return chosen


def step_of(
    series: dict[str, list[Any]], step: int, step_ns: int, chosen: Sequence[int]
) -> list[int]:
    """Those of the chosen periods that end in this step of the time line."""
    times = series["time_ns"]
    return [i for i in chosen if step * step_ns < times[i] <= (step + 1) * step_ns]


def mean(values: Sequence[float]) -> float:
    """The mean; 0 for an empty sequence."""
    return sum(values) / len(values) if values else 0.0


def step_rows(
    series_by: dict[str, dict[str, list[Any]]],
    labels: Sequence[str],
    step_ns: int,
    period_ns: int,
    slo_ns: Sequence[int],
) -> list[Row]:
    """One row per controller and step: rate, delay and violations outside of transients."""
    rows = []
    for controller, series in series_by.items():
        chosen = settled(series, step_ns, len(labels), period_ns)
        for step, label in enumerate(labels):
            inside = step_of(series, step, step_ns, chosen)
            every = step_of(series, step, step_ns, range(len(series["time_ns"])))
            violated = [series["is_violated"][i] for i in inside]
            rows.append(
                {
                    "controller": controller,
                    "step": label,
                    "slo_ns": slo_ns[step],
                    "trigger_pkts": mean([series["trigger_pkts"][i] for i in inside]),
                    "rate_pps": mean([series["out_pps"][i] for i in inside]),
                    "delay_ns": mean([series["delay_ns"][i] for i in inside]),
                    "violated_ratio": mean(violated),
                    "violated_in_all_ratio": mean([series["is_violated"][i] for i in every]),
                    "worst_delay_ns": max((series["worst_delay_ns"][i] for i in every), default=0),
                }
            )
    return rows


COLUMNS = (
    ("controller", "<controller", shown),
    ("step", "<step", shown),
    ("slo_ns", "SLO", short_duration),
    ("trigger_pkts", "trigger", lambda value: f"{value:.1f}"),
    ("rate_pps", "rate", short_rate),
    ("delay_ns", "p95 of flow 0", short_duration),
    ("violated_ratio", "violated, settled", lambda value: f"{value:.1%}"),
    ("violated_in_all_ratio", "violated, all", lambda value: f"{value:.1%}"),
    ("worst_delay_ns", "worst delay", short_duration),
)


def draw_series(
    series_by: dict[str, dict[str, list[Any]]],
    title: str,
    note: str,
    is_log: bool,
    normalise: str = "",
    module: str = MODULE,
    flow: str = FLOW,
    is_rate_log: bool | None = None,  # None: the same as `is_log`
) -> Figure:
    """The three panels of figure 9: trigger, delay and rate of each controller."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 9.0), layout="constrained")
    figure.suptitle(title, fontsize=11)
    top, middle, low = figure.subplots(3, 1, sharex=True)
    most = max(max(s["out_pps"]) for s in series_by.values())
    for c, (controller, series) in enumerate(series_by.items()):
        colour = COLOURS[c % len(COLOURS)]
        times_ms = [t / 1e6 for t in series["time_ns"]]
        top.step(times_ms, series["trigger_pkts"], where="pre", color=colour, label=controller)
        # A period without a packet of the flow has no delay.
        delays_us = [d / 1e3 if d else float("nan") for d in series["delay_ns"]]
        middle.plot(times_ms, delays_us, color=colour, label=controller, linewidth=1.2)
        rates = [r / most if normalise else r / 1e6 for r in series["out_pps"]]
        low.plot(times_ms, rates, color=colour, label=controller, linewidth=1.2)
    first = next(iter(series_by.values()))
    slo_us = [s / 1e3 for s in first["slo_ns"]]
    middle.step(
        [t / 1e6 for t in first["time_ns"]], slo_us, where="pre", color="black", linestyle=":",
        label="SLO",
    )  # fmt: skip
    top.set_ylabel(f"trigger of {module}\n[packets]")
    middle.set_ylabel(f"p95 delay of {flow} [us]")
    low.set_ylabel(f"rate / {normalise}" if normalise else "rate [Mpps]")
    low.set_xlabel("time [ms]")
    middle.set_title(note, fontsize=9, loc="right")
    if is_log:
        middle.set_yscale("log")
    if is_log if is_rate_log is None else is_rate_log:
        low.set_yscale("log")
    for axis in (top, middle, low):
        axis.grid(True, color="#dddddd", linewidth=0.6)
    legend_below(figure, middle)
    return figure
