# SPDX-License-Identifier: BSD-3-Clause
"""events.py - `pythia_burst`, `pythia_device_loss`: traffic bursts, and a device that fails."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...placement.plant import PERIOD_S, App, Course, Load, run, standins
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHOOSERS = ("placer", "oracle", "static", "all", "nba", "alone:cpu", "alone:dgpu")
APPS = (App("aes", 400_000), App("dpi", 500_000))
SECONDS = 6
BURSTS_MS = (50, 100, 200, 500)
FACTOR = 6
GONE_S, BACK_S = 2.0, 4.0


def burst(length_ms: int) -> Load:
    """AES gets several times its traffic, at 2 s, 3 s, 4 s and 5 s."""
    changes = []
    for at_s in (2, 3, 4, 5):
        begin_ns = int(at_s * 1e9 + 30e6)
        changes += [
            {"at_ns": begin_ns, "app": "aes", "rate_pps": FACTOR * APPS[0].rate_pps},
            {"at_ns": begin_ns + length_ms * 1_000_000, "app": "aes", "rate_pps": APPS[0].rate_pps},
        ]
    return Load(APPS, SECONDS, changes)


def loss() -> Load:
    """The large GPU fails at 2 s and is back at 4 s."""
    apps = (App("aes", 1_200_000), App("dpi", 1_500_000))
    changes = [
        {"at_ns": int(GONE_S * 1e9), "device": "dgpu", "is_up": False},
        {"at_ns": int(BACK_S * 1e9), "device": "dgpu", "is_up": True},
    ]
    return Load(apps, SECONDS, changes)


def plan_burst(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Bursts of several lengths, every chooser."""
    yield []
    lengths = BURSTS_MS[1:3] if setup.is_quick else BURSTS_MS
    rows = []
    for length_ms in lengths:
        for chooser in CHOOSERS:
            course = run(burst(length_ms), chooser)
            rows.append({
                "burst_ms": length_ms, "chooser": chooser, "served": course.served(10),
                "late": course.late(10), "watts": course.watts(10),
            })  # fmt: skip
    return Outcome(rows, COLUMNS, claims_burst(rows), lambda: draw(rows, setup))


def claims_burst(rows: list[Row]) -> list[Verdict]:
    """Bursts are served, and cost no more than necessary."""
    mine = {f"{row['burst_ms']} ms": row for row in rows if row["chooser"] == "placer"}
    every = {f"{row['burst_ms']} ms": row for row in rows if row["chooser"] == "all"}
    return [
        at_least("served under bursts", {k: row["served"] for k, row in mine.items()}, 0.95,
                 percent),
        at_most("late under bursts", {k: row["late"] for k, row in mine.items()}, 0.05, percent),
        at_least("power of all devices always, over the placer's",
                 {k: every[k]["watts"] / row["watts"] for k, row in mine.items()}, 1, times),
    ]  # fmt: skip


def plan_loss(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """One device fails and comes back, for every chooser."""
    yield []
    courses = {chooser: run(loss(), chooser) for chooser in CHOOSERS}
    rows = [_loss_row(chooser, course) for chooser, course in courses.items()]
    return Outcome(rows, COLUMNS_LOSS, claims_loss(rows), lambda: draw_loss(courses, setup))


def _loss_row(chooser: str, course: Course) -> Row:
    gone, back = int(GONE_S / PERIOD_S), int(BACK_S / PERIOD_S)
    return {
        "chooser": chooser,
        "before": course.served(10, gone),
        "first": course.served(gone, gone + 1),
        "without": course.served(gone + 1, back),
        "after": course.served(back + 2),
        "lost": course.sum("lost_pkts", first=gone, last=back)
        / course.sum("offered_pkts", first=gone, last=back),
        "late": course.late(gone + 1, back),
    }


def claims_loss(rows: list[Row]) -> list[Verdict]:
    """The other devices take over at once, and no packets are lost in front of the failed one."""
    by = {row["chooser"]: row for row in rows}
    mine, oracle = by["placer"], by["oracle"]
    return [
        at_least("served in the first 100 ms without the device, beside the one who knows",
                 {"placer": mine["first"] / oracle["first"]}, 0.95, percent),
        at_least("served without the device, beside the one who knows",
                 {"placer": mine["without"] / oracle["without"]}, 0.95, percent),
        at_most("lost in front of the device", {"placer": mine["lost"]}, 0.001, percent),
        at_least("served once it is back", {"placer": mine["after"]}, 0.99, percent),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """The share of late and unserved packets, by length of the burst."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    figure.suptitle(f"bursts of {FACTOR} times the traffic ({setup.label}; stand-ins)", fontsize=10)
    axis = figure.add_subplot()
    for colour, chooser in zip(COLOURS, CHOOSERS, strict=False):
        mine = [row for row in rows if row["chooser"] == chooser]
        good = [row["served"] * (1 - row["late"]) for row in mine]
        axis.plot([row["burst_ms"] for row in mine], good, "o-", color=colour, label=chooser)
    axis.set_xlabel("length of a burst, ms")
    axis.set_ylabel("served in time")
    axis.legend(fontsize=8)
    return figure


def draw_loss(courses: dict[str, Course], setup: Setup) -> Figure:
    """The served share over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    figure.suptitle(
        f"the large GPU is away from 2 s to 4 s ({setup.label}; stand-ins)", fontsize=10
    )
    axis = figure.add_subplot()
    for colour, (chooser, course) in zip(COLOURS, courses.items(), strict=False):
        seconds = [row["end_ns"] / 1e9 for row in course.rows]
        mpps = [course.sum("served_pkts", "", k, k + 1) / PERIOD_S / 1e6
                for k in range(len(course.rows))]  # fmt: skip
        axis.plot(seconds, mpps, color=colour, linewidth=1.2, label=chooser)
    axis.set_xlabel("seconds")
    axis.set_ylabel("served, Mpps")
    axis.legend(fontsize=8)
    return figure


COLUMNS = (
    ("burst_ms", "burst, ms", shown),
    ("chooser", "who decides", shown),
    ("served", "served", lambda v: f"{v:.1%}"),
    ("late", "late", lambda v: f"{v:.2%}"),
    ("watts", "W", lambda v: f"{v:.1f}"),
)
COLUMNS_LOSS = (
    ("chooser", "who decides", shown),
    ("before", "served before", lambda v: f"{v:.1%}"),
    ("first", "in the first 100 ms", lambda v: f"{v:.1%}"),
    ("without", "without it", lambda v: f"{v:.1%}"),
    ("after", "once it is back", lambda v: f"{v:.1%}"),
    ("lost", "lost", lambda v: f"{v:.2%}"),
    ("late", "late without it", lambda v: f"{v:.2%}"),
)
_NOTE = f"devices are stand-ins, {standins()['origin']}."

EXPERIMENT = Experiment(
    "pythia_burst", "Pythia: traffic that comes at once", plan_burst, "pythia_burst", (), _NOTE
)
EXPERIMENT_LOSS = Experiment(
    "pythia_device_loss", "Pythia: a device goes and comes back", plan_loss, "pythia_device_loss",
    (), _NOTE,
)  # fmt: skip
