# SPDX-License-Identifier: BSD-3-Clause
"""table2.py - static pipelines at full load under every controller: table 2 and figure 7.

First `max` runs without an SLO. 80 % of its p95 delay, averaged over periods and flows, is the SLO
of all runs in the table.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ..common.case import NO_LIMIT, Case
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup, shown
from .table2_claims import claims
from .table2_configs import EXPLICIT, Config, configs, executions, promises

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "max", "onoff", "full", "optimal")
CAREFUL = ("full", "optimal")  # run again with delta = 0.2
CAREFUL_TOLERANCE = 0.2
SLO_SHARE = 0.8
SEEDS = (1, 2, 3)
# Warm-up periods, periods and their length: the papers', and short ones. A real machine rarely
# leaves a program undisturbed for 100 ms.
_LENGTHS = {
    (False, False): (100, 100, 100_000_000),
    (False, True): (20, 30, 10_000_000),
    (True, False): (200, 2000, 10_000_000),
    (True, True): (30, 50, 10_000_000),
}


def stage_case(config: Config, setup: Setup, controller: str, seed: int, **more: Any) -> Case:
    """A run of a configuration; warm-up and periods as in the papers, or shorter."""
    warmup, periods, period_ns = _LENGTHS[setup.is_measured, setup.is_quick]
    params = {**dict(config.params), "saturate": True, "age_limit": NO_LIMIT}
    sets = ("idle=hold", *more.pop("sets", ()))
    name = more.pop("name", controller)
    if controller in EXPLICIT:  # explicit scheduling: each module gets its share of cycles
        how, controller = EXPLICIT[controller]
        more["engine"] = {"execution": how}
    return Case(
        f"{config.label}/{name}/{seed}",
        config.pipeline,
        controller,
        params,
        sets=sets,
        costs=setup.costs,
        period_ns=period_ns,
        warmup_periods=warmup,
        periods=periods,
        seed=seed,
        trace=dict(config.trace),
        **more,
    )


def seeds(setup: Setup) -> tuple[int, ...]:
    """The seeds to average over; a quick run on a daemon has one."""
    return SEEDS[:1] if setup.is_measured and setup.is_quick else SEEDS


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Calibration, then all controllers."""
    static = configs(setup)
    controllers = (*CONTROLLERS, *executions())
    first = [
        stage_case(config, setup, "max", seed, name="calibration")
        for config in static
        if config.slo_ns is None
        for seed in seeds(setup)
    ]
    calibrated = yield first
    slo_ns = {config.label: slo_of(config, calibrated, setup) for config in static}
    cases = []
    for config in static:
        sets = promises(config, slo_ns[config.label])
        for seed in seeds(setup):
            cases += [stage_case(config, setup, c, seed, sets=sets) for c in controllers]
            settings = {"tolerance": CAREFUL_TOLERANCE}
            cases += [
                stage_case(config, setup, c, seed, sets=sets, settings=settings, name=careful(c))
                for c in CAREFUL
            ]
    results = yield cases
    rows = [
        row
        for config in static
        for name in (*controllers, *map(careful, CAREFUL))
        for row in [mean_row(config, name, slo_ns[config.label], results, setup)]
    ]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def careful(controller: str) -> str:
    """The name of a controller with delta = 0.2."""
    return f"{controller}, delta 0.2"


def slo_of(config: Config, calibrated: Results, setup: Setup) -> int:
    """80 % of the p95 delay under `max`, averaged over periods, flows and runs."""
    if config.slo_ns is not None:
        return config.slo_ns
    delays = [
        calibrated[f"{config.label}/calibration/{seed}"]["delay_mean_of_periods_ns"]
        for seed in seeds(setup)
    ]
    return round(SLO_SHARE * statistics.fmean(delays))


def mean_row(config: Config, controller: str, slo_ns: int, results: Results, setup: Setup) -> Row:
    """Means over the seeds."""
    runs = [results[f"{config.label}/{controller}/{seed}"] for seed in seeds(setup)]

    def mean(key: str) -> float | None:
        # None: a pipeline without buffers has no batch size, or the machine disturbed every period.
        found = [run[key] for run in runs if run.get(key) is not None]
        return statistics.fmean(found) if found else None

    return {
        "pipeline": config.label,
        "controller": controller,
        "modules": runs[0]["modules"],
        "slo_ns": slo_ns,
        "batch_mean_pkts": mean("batch_mean_pkts"),
        "rate_pps": mean("rate_pps"),
        "violated_ratio": mean("violated_ratio"),
        "excess_mean_ratio": mean("excess_mean_ratio"),
        "excess_max_ratio": max(run["excess_max_ratio"] for run in runs),
        "stalled_ratio": mean("stalled_ratio"),
        "runs": len(runs),
    }


def draw(rows: list[Row], setup: Setup) -> Figure:
    """The bars of figure 7."""
    from .table2_figure import draw_bars

    return draw_bars(rows, setup)


def part(value: float | None) -> str:
    """A ratio, or - if there is none."""
    return "-" if value is None else f"{value:.1%}"


COLUMNS = (
    ("pipeline", "<pipeline", shown),
    ("modules", "modules", shown),
    ("slo_ns", "SLO", short_duration),
    ("controller", "<controller", shown),
    ("batch_mean_pkts", "batch", lambda value: "-" if value is None else f"{value:.1f}"),
    ("rate_pps", "rate", short_rate),
    ("violated_ratio", "violated periods", part),
    ("stalled_ratio", "held up", part),
    ("excess_mean_ratio", "excess", lambda value: f"{value:.1%}"),
)

EXPERIMENT = Experiment(
    "table2",
    "static pipelines at full load under every controller (table 2, figure 7)",
    plan,
    "fig7",
    CONTROLLERS,
    "VRF as in the papers' scripts (ACL last, no NAT); RC(16) at the scripts' 35 us; with a star: "
    "a made-up backbone trace replayed, which only a simulation can.",
    BOTH,
)
