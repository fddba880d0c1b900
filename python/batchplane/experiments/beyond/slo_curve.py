# SPDX-License-Identifier: BSD-3-Clause
"""slo_curve.py - rate by SLO, from max's own delay down to null's, for all controllers.

First `max` and `null` run; their p95 delays, averaged over periods and flows, are the ends.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...base.units import short_duration, short_rate
from ...plots.base import COLOURS, legend_below
from ..batchy.table2 import part, stage_case
from ..batchy.table2_configs import CONFIGS, Config
from ..common.case import Case
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "max", "onoff", "feasdir", "full", "optimal")
_LABELS = ("GW(16)", "VRF(2,4)", "L2L3(16)")
_QUICK_POINTS, _POINTS = 6, 12
_BUCKET = 1.04  # resolution of a percentile; max must meet its own delay
_ROOM = 1.1  # and null its own, which is so short that buckets are coarser
# A controller that is late more often does not meet its SLO, whatever its rate.
MAX_VIOLATED = 0.005


def configs() -> list[Config]:
    """The configurations of table 2 in which buffers gain rate at the cost of delay."""
    return [config for config in CONFIGS if config.label in _LABELS]


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """The ends, then all controllers at all points."""
    ends = yield [
        stage_case(config, setup, controller, 1, name=f"end of {controller}")
        for config in configs()
        for controller in ("null", "max")
    ]
    points = {config.label: slos_ns(config, ends, setup) for config in configs()}
    cells = [
        (config, slo_ns, controller)
        for config in configs()
        for slo_ns in points[config.label]
        for controller in CONTROLLERS
    ]
    results = yield [
        stage_case(
            config, setup, controller, 1, name=f"{controller} at {slo_ns}",
            sets=(f"{config.slo_flow}.slo={slo_ns}ns",),
        )
        for config, slo_ns, controller in cells
    ]  # fmt: skip
    rows = [row(config, slo_ns, c, points, results) for config, slo_ns, c in cells]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def slos_ns(config: Config, ends: Results, setup: Setup) -> list[int]:
    """SLOs from max's delay down to null's, evenly spaced."""
    most, least = (
        room * float(ends[f"{config.label}/end of {name}/1"]["delay_mean_of_periods_ns"])
        for name, room in (("max", _BUCKET), ("null", _ROOM))
    )
    n = _QUICK_POINTS if setup.is_quick else _POINTS
    return [round(most + (least - most) * i / (n - 1)) for i in range(n)]


def row(
    config: Config, slo_ns: int, controller: str, points: dict[str, list[int]], results: Results
) -> Row:
    """One point of one line."""
    run = results[f"{config.label}/{controller} at {slo_ns}/1"]
    return {
        "pipeline": config.label,
        "slo_ns": slo_ns,
        "slo_ratio": slo_ns / points[config.label][0],
        "controller": controller,
        "rate_pps": run["rate_pps"],
        "batch_mean_pkts": run["batch_mean_pkts"],
        "delay_mean_of_periods_ns": run["delay_mean_of_periods_ns"],
        "violated_ratio": run["violated_ratio"],
        "is_kept": (run["violated_ratio"] or 0.0) <= MAX_VIOLATED,
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """Ours compared with the best controller that meets the SLO, at each point."""
    points = list(dict.fromkeys((r["pipeline"], r["slo_ns"]) for r in rows))
    by = {(r["pipeline"], r["slo_ns"], r["controller"]): r for r in rows}

    def name(point: tuple[str, int]) -> str:
        return f"{point[0]} at {short_duration(point[1])}"

    best: dict[str, float] = {}
    full: dict[str, float] = {}
    for point in points:
        mine = by[(*point, "optimal")]["rate_pps"]
        kept = [by[(*point, c)] for c in CONTROLLERS if c != "optimal"]
        rates = [r["rate_pps"] for r in kept if r["is_kept"]]
        if rates:
            best[name(point)] = mine / max(rates)
        if by[(*point, "full")]["is_kept"]:
            full[name(point)] = mine / by[(*point, "full")]["rate_pps"]
    violated = {name(p): by[(*p, "optimal")]["violated_ratio"] for p in points}
    late = {where: value for where, value in violated.items() if value is not None}
    return [
        at_least(
            "ours: optimal carries the rate of the best that keeps the SLO (0.98)", best, 0.98,
            times,
        ),
        at_least(
            "ours: optimal carries full's rate where full keeps the SLO (0.98)", full, 0.98, times
        ),
        at_most("ours: optimal violates at most 0.1 % of periods", late, 0.001, percent),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """One panel per pipeline, one line per controller; hollow where the SLO is not met."""
    from matplotlib.figure import Figure

    pipelines = list(dict.fromkeys(r["pipeline"] for r in rows))
    figure = Figure(figsize=(4.6 * len(pipelines), 4.6), layout="constrained")
    figure.suptitle(f"rate against SLO; hollow: violated ({setup.origin})", fontsize=10)
    panels = figure.subplots(1, len(pipelines), squeeze=False)[0]
    for panel, pipeline in zip(panels, pipelines, strict=True):
        for i, controller in enumerate(CONTROLLERS):
            mine = [r for r in rows if (r["pipeline"], r["controller"]) == (pipeline, controller)]
            colour = COLOURS[i % len(COLOURS)]
            panel.plot(
                [r["slo_ns"] / 1e3 for r in mine], [r["rate_pps"] / 1e6 for r in mine], "-",
                color=colour, label=controller, linewidth=1.0,
            )  # fmt: skip
            for r in mine:
                panel.plot(
                    r["slo_ns"] / 1e3, r["rate_pps"] / 1e6, "o", color=colour, markersize=4.5,
                    markerfacecolor=colour if r["is_kept"] else "white",
                )  # fmt: skip
        panel.set_title(pipeline, fontsize=10)
        panel.set_xlabel("SLO [us]")
        panel.set_ylabel("rate [Mpps]")
        panel.grid(True, color="#dddddd", linewidth=0.6)
    legend_below(figure, panels[0])
    return figure


COLUMNS = (
    ("pipeline", "<pipeline", shown),
    ("slo_ns", "SLO", short_duration),
    ("slo_ratio", "of max's delay", percent),
    ("controller", "<controller", shown),
    ("rate_pps", "rate", short_rate),
    ("batch_mean_pkts", "batch", lambda value: "-" if value is None else f"{value:.1f}"),
    ("delay_mean_of_periods_ns", "p95", short_duration),
    ("violated_ratio", "violated periods", part),
)

EXPERIMENT = Experiment(
    "slo_curve", "rate against SLO, from max's delay down to null's", plan, "slo_curve",
    CONTROLLERS, "Not in the papers.", BOTH,
)  # fmt: skip
