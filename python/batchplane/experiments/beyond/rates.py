# SPDX-License-Identifier: BSD-3-Clause
"""rates.py - our rates next to the original program's, at its own SLOs and at 80 % of max's delay.

The original's rates were measured once on two kinds of CPU. A verdict uses those of this machine's
kind, or the higher ones on any other CPU.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ...costs.keys import cpu_name
from ..batchy.table2 import SEEDS, SLO_SHARE, part, stage_case
from ..batchy.table2_configs import CONFIGS, Config
from ..common.case import Case
from ..common.experiment import MEASURED, SIMULATED, Experiment, Outcome, Results, Row, Setup, shown
from .rates_claims import claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "max", "full", "optimal")
# Mpps under null, max and full: Sapphire Rapids, Zen 4.
Rates = tuple[float, float, float]


@dataclass(frozen=True)
class Original:
    """The original program's rates at an SLO of its own scripts."""

    label: str
    slo_ns: int
    intel: Rates
    amd: Rates

    def rates_pps(self, cpu: str) -> dict[str, float]:
        """Rates by controller, for this kind of CPU."""
        if "intel" in cpu.lower():
            chosen = self.intel
        elif "amd" in cpu.lower():
            chosen = self.amd
        else:
            chosen = max(self.intel, self.amd, key=lambda rates: rates[2])
        return {c: mpps * 1e6 for c, mpps in zip(("null", "max", "full"), chosen, strict=True)}


ORIGINALS = (
    Original("L2L3(16)", 79_000, (5.6, 6.4, 7.0), (5.4, 8.0, 8.1)),
    Original("GW(16)", 119_000, (3.6, 4.8, 5.4), (3.4, 5.2, 5.7)),
    Original("VRF(2,4)", 73_000, (4.5, 6.8, 6.3), (4.4, 6.1, 6.3)),
    Original("RC(16)", 35_000, (0.39, 2.95, 3.12), (0.43, 3.5, 3.75)),
)
_TIGHT = ("L2L3(16)", "GW(16)", "GW(64)", "VRF(2,4)", "RC(16)")
_TIGHT_CONTROLLERS = ("max", "optimal")
# The daemon must spin for the time that the SLOs assume, whatever the CPU's clock.
_ROBOT_BATCH_NS = 4_000


def config_of(label: str) -> Config:
    """The configuration of table 2; robot control has its cost in time."""
    config = next(config for config in CONFIGS if config.label == label)
    if config.pipeline != "robot_control":
        return config
    in_time = (("bulk_cycles", 0), ("bulk_ns", _ROBOT_BATCH_NS))
    return replace(config, params=(*config.params, *in_time))


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """The original's SLOs and the calibration first, then 80 % of the calibrated delay."""
    cases = []
    for original in ORIGINALS:
        config = config_of(original.label)
        sets = (f"{config.slo_flow}.slo={original.slo_ns}ns",)
        for seed in SEEDS:
            cases += [
                stage_case(config, setup, c, seed, sets=sets, name=f"{c} at the original's")
                for c in CONTROLLERS
            ]
    for label in _TIGHT:
        for seed in SEEDS:
            cases.append(stage_case(config_of(label), setup, "max", seed, name="calibration"))
    first = yield cases
    rows = [_row(o, c, first) for o in ORIGINALS for c in CONTROLLERS]
    tight = {label: _tight_slo(label, first) for label in _TIGHT}
    second = yield [
        stage_case(
            config_of(label), setup, c, seed, sets=_of_all(label, slo_ns), name=f"{c} at 80 %"
        )
        for label, slo_ns in tight.items()
        for seed in SEEDS
        for c in _TIGHT_CONTROLLERS
    ]
    rows += [
        _tight_row(label, tight[label], c, second) for label in _TIGHT for c in _TIGHT_CONTROLLERS
    ]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _of_all(label: str, slo_ns: int) -> tuple[str, ...]:
    flows = ("robot", "bulk_*") if config_of(label).pipeline == "robot_control" else ("flow_*",)
    return tuple(f"{flow}.slo={slo_ns}ns" for flow in flows)


def _tight_slo(label: str, results: Results) -> int:
    delays: list[float] = [
        results[f"{label}/calibration/{s}"]["delay_mean_of_periods_ns"] for s in SEEDS
    ]
    return round(SLO_SHARE * float(statistics.median(delays)))


def _row(original: Original, controller: str, results: Results) -> Row:
    runs = {
        c: [results[f"{original.label}/{c} at the original's/{s}"] for s in SEEDS]
        for c in CONTROLLERS
    }
    row = _medians(original.label, "the original's", original.slo_ns, controller, runs)
    theirs = original.rates_pps(str(runs["null"][0].get("cpu") or cpu_name()))
    # The original has no `optimal`: ours is compared with its `full`.
    other = theirs.get(controller, theirs["full"])
    return {**row, "original_pps": other, "ratio": row["rate_pps"] / other}


def _tight_row(label: str, slo_ns: int, controller: str, results: Results) -> Row:
    runs = {c: [results[f"{label}/{c} at 80 %/{s}"] for s in SEEDS] for c in _TIGHT_CONTROLLERS}
    row = _medians(label, "80 % of max's", slo_ns, controller, runs)
    return {**row, "original_pps": None, "ratio": None}


def _medians(
    label: str, where: str, slo_ns: int, controller: str, by_controller: dict[str, list[Any]]
) -> Row:
    """Medians of the runs; ratios to another controller's rate are taken run by run, since machines
    change their speed for seconds."""
    runs = by_controller[controller]
    rates = [run["rate_pps"] for run in runs]

    def paired(other: str) -> float | None:
        if other not in by_controller:
            return None
        pairs = zip(rates, by_controller[other], strict=True)
        shares: list[float] = [mine / run["rate_pps"] for mine, run in pairs]
        return statistics.median(shares)

    def median(key: str) -> float | None:
        found = [run[key] for run in runs if run.get(key) is not None]
        return statistics.median(found) if found else None

    return {
        "pipeline": label,
        "slo": where,
        "slo_ns": slo_ns,
        "controller": controller,
        "rate_pps": statistics.median(rates),
        "rate_min_pps": min(rates),
        "rate_max_pps": max(rates),
        "of_null": paired("null"),
        "of_max": paired("max"),
        "batch_mean_pkts": median("batch_mean_pkts"),
        "delay_mean_of_periods_ns": median("delay_mean_of_periods_ns"),
        "violated_ratio": _mean(runs, "violated_ratio"),
        "stalled_ratio": _mean(runs, "stalled_ratio"),
        "runs": len(runs),
    }


def _mean(runs: list[Any], key: str) -> float | None:
    found = [run[key] for run in runs if run.get(key) is not None]
    return statistics.fmean(found) if found else None


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Bars of our rates by controller, with the original's as black lines across them."""
    from .rates_figure import draw_bars

    return draw_bars(rows, setup)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


COLUMNS = (
    ("pipeline", "<pipeline", shown),
    ("slo", "<SLO of", shown),
    ("slo_ns", "SLO", short_duration),
    ("controller", "<controller", shown),
    ("rate_pps", "rate", short_rate),
    ("original_pps", "original", short_rate),
    ("ratio", "of it", _share),
    ("of_null", "of null", _share),
    ("of_max", "of max", _share),
    ("batch_mean_pkts", "batch", lambda value: "-" if value is None else f"{value:.1f}"),
    ("delay_mean_of_periods_ns", "p95", short_duration),
    ("violated_ratio", "violated periods", part),
    ("stalled_ratio", "held up", part),
)

EXPERIMENT = Experiment(
    "rates", "rates beside the original's at its SLOs, and at 80 % of max's delay", plan, "rates",
    CONTROLLERS, "Medians of 3 runs; the original's rates are those of one measurement.",
    (MEASURED, SIMULATED),
)  # fmt: skip
