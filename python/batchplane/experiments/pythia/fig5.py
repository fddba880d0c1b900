# SPDX-License-Identifier: BSD-3-Clause
"""fig5.py - `pythia_fig5ab`, `pythia_fig5cd`: AES and DPI together on three devices, with changing
traffic, and with changing policies."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING

from ...placement.plant import PERIOD_S, App, Course, Load, run, standins
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOOSERS = ("placer", "oracle", "static", "all", "nba", "alone:cpu", "alone:igpu", "alone:dgpu")
APPS = ("aes", "dpi")
BASE = {"aes": 400_000.0, "dpi": 500_000.0}
POLICIES = ("power", "latency", "throughput", "power")
# Each policy applies for this long.
PHASE_S = 5


def fluctuating(is_quick: bool) -> Load:
    """Rates that rise and fall, each at its own pace, with steps."""
    seconds = 12 if is_quick else 60
    changes = []
    for k in range(int(seconds / 0.5)):
        at_s = 0.05 + 0.5 * k
        swell = {
            "aes": 1.1 + math.sin(2 * math.pi * at_s / 10),
            "dpi": 1.1 + math.sin(2 * math.pi * at_s / 7 + 2),
        }
        step = 4.0 if int(at_s / 4) % 3 == 2 else 1.0
        changes += [
            {"at_ns": int(at_s * 1e9), "app": app, "rate_pps": BASE[app] * swell[app] * step}
            for app in APPS
        ]
    return Load([App(app, BASE[app]) for app in APPS], seconds, changes)


def wanting() -> Load:
    """The same traffic with the fewest watts, the least delay, and the most headroom as
    policies."""
    changes = [
        {"at_ns": int((k * PHASE_S + 0.05) * 1e9), "app": app, "policy": policy}
        for k, policy in enumerate(POLICIES)
        for app in APPS
    ]
    return Load([App(app, BASE[app]) for app in APPS], PHASE_S * len(POLICIES), changes)


def _row(chooser: str, course: Course) -> Row:
    # The first period does not depend on the chooser.
    return {
        "chooser": chooser,
        "served": course.served(1),
        "late": course.late(1),
        "watts": course.watts(1),
        "delay_ms": course.delay_ms("aes", 1),
        "changes": sum(
            a["plan"] != b["plan"] for a, b in zip(course.rows[1:], course.rows[2:], strict=False)
        ),
    }


def plan_ab(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Every chooser on the same fluctuating traffic."""
    yield []
    load = fluctuating(setup.is_quick)
    courses = {chooser: run(load, chooser) for chooser in CHOOSERS}
    rows = [_row(chooser, course) for chooser, course in courses.items()]
    return Outcome(rows, COLUMNS, claims_ab(rows), lambda: draw(courses, setup, "traffic"))


def claims_ab(rows: list[Row]) -> list[Verdict]:
    """Served packets compared with the oracle, and watts compared with using all devices."""
    by = {row["chooser"]: row for row in rows}
    placer, oracle = by["placer"], by["oracle"]
    saved = by["all"]["watts"] / placer["watts"]
    served = {"placer": placer["served"] / oracle["served"]}
    drawn = {"placer": placer["watts"] / oracle["watts"]}
    return [
        at_least("served, beside the one who knows everything", served, 0.95, percent),
        at_most("power, beside the one who knows everything", drawn, 1.05, times),
        at_most("packets that were late", {"placer": placer["late"]}, 0.01, percent),
        at_least("power of all devices always, over the placer's", {"all": saved}, 1.0, times),
    ]


def plan_cd(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Four phases, each with its policy."""
    yield []
    course = run(wanting(), "placer")
    rows = [_phase(course, k) for k in range(len(POLICIES))]
    return Outcome(
        rows, COLUMNS_CD, claims_cd(rows), lambda: draw({"placer": course}, setup, "policy")
    )


def _phase(course: Course, k: int) -> Row:
    """A phase, after the switch to its policy."""
    n = int(PHASE_S / PERIOD_S)
    first, last = k * n + 3, (k + 1) * n
    told = k * n + 1 if k else 0
    settled = next(
        (p - told for p in range(told, last)
         if course.rows[p]["plan"] == course.rows[last - 1]["plan"]), last - told,
    )  # fmt: skip
    places = course.places(last - 1)
    return {
        "policy": POLICIES[k],
        "devices": ", ".join(f"{app}: {places[app]}" for app in APPS),
        "served": course.served(first, last),
        "late": course.late(first, last),
        "watts": course.watts(first, last),
        "delay_ms": course.delay_ms("aes", first, last),
        "busiest": max(max(row["busy_ns"]) for row in course.rows[first:last]) / (PERIOD_S * 1e9),
        "settled": settled,
    }


def claims_cd(rows: list[Row]) -> list[Verdict]:
    """Each policy is best at its own goal, and takes effect soon."""
    power, latency, throughput = rows[0], rows[1], rows[2]
    return [
        at_most("watts under `power`, over the other policies'",
                {row["policy"]: power["watts"] / row["watts"] for row in (latency, throughput)},
                1.0, times),
        at_most("delay under `latency`, over the other policies'",
                {row["policy"]: latency["delay_ms"] / row["delay_ms"]
                 for row in (power, throughput)}, 1.0, times),
        at_most("how busy the busiest device is under `throughput`, over the other policies'",
                {row["policy"]: throughput["busiest"] / row["busiest"]
                 for row in (power, latency)}, 1.0, times),
        at_most("periods until the last plan of a policy is in force",
                {f"{k}: {row['policy']}": row["settled"] for k, row in enumerate(rows)}, 2,
                lambda v: f"{v:.0f}"),
        at_least("served under every policy", {row["policy"]: row["served"] for row in rows}, 0.95,
                 percent),
    ]  # fmt: skip


def draw(courses: dict[str, Course], setup: Setup, what: str) -> Figure:
    """Rates above, power below, over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 6.0), layout="constrained")
    figure.suptitle(
        f"AES and DPI on three devices, {what} changing ({setup.label}; stand-ins)", fontsize=10
    )
    rates, power = figure.subplots(2, 1, sharex=True)
    placer = courses["placer"]
    seconds = [row["end_ns"] / 1e9 for row in placer.rows]
    for colour, app in zip(COLOURS, APPS, strict=False):
        for key, style in (("offered_pkts", ":"), ("served_pkts", "-")):
            mpps = [row["apps"][app][key] / PERIOD_S / 1e6 for row in placer.rows]
            label = f"{app}, {key.removesuffix('_pkts')}"
            rates.plot(seconds, mpps, style, color=colour, linewidth=1.2, label=label)
    rates.set_ylabel("Mpps")
    rates.legend(fontsize=8, ncols=2)
    for colour, (name, course) in zip(COLOURS, courses.items(), strict=False):
        if name in ("placer", "oracle", "all", "static"):
            _draw_watts(power, seconds, course, name, colour)
    power.set_xlabel("seconds")
    power.set_ylabel("W, modelled")
    power.legend(fontsize=8)
    return figure


def _draw_watts(axis: Axes, seconds: list[float], course: Course, name: str, colour: str) -> None:
    watts = [row["joules"] / PERIOD_S for row in course.rows]
    axis.plot(seconds, watts, color=colour, linewidth=1.2, label=name)


COLUMNS = (
    ("chooser", "who decides", shown),
    ("served", "served", lambda v: f"{v:.1%}"),
    ("late", "late", lambda v: f"{v:.2%}"),
    ("watts", "W", lambda v: f"{v:.1f}"),
    ("delay_ms", "delay of AES, ms", lambda v: f"{v:.2f}"),
    ("changes", "changes", shown),
)
COLUMNS_CD = (
    ("policy", "policy", shown),
    ("devices", "devices", shown),
    ("served", "served", lambda v: f"{v:.1%}"),
    ("late", "late", lambda v: f"{v:.2%}"),
    ("watts", "W", lambda v: f"{v:.1f}"),
    ("delay_ms", "delay of AES, ms", lambda v: f"{v:.2f}"),
    ("busiest", "busiest device", lambda v: f"{v:.0%}"),
    ("settled", "periods until settled", shown),
)
_NOTE = (
    "the paper's curves are not known, so its claims are judged; devices are stand-ins, "
    f"{standins()['origin']}."
)

EXPERIMENT = Experiment(
    "pythia_fig5ab", "Pythia, figure 5 a and b: rate and power under fluctuating traffic", plan_ab,
    "pythia_fig5ab", (), _NOTE,
)  # fmt: skip
EXPERIMENT_CD = Experiment(
    "pythia_fig5cd", "Pythia, figure 5 c and d: rate and power under changing policies", plan_cd,
    "pythia_fig5cd", (), _NOTE,
)  # fmt: skip
