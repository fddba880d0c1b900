# SPDX-License-Identifier: BSD-3-Clause
"""energy.py - `pythia_energy`: energy per packet at every load, compared with using all devices."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...placement.plant import App, Load, capacity_pps, run, standins
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, percent, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHOOSERS = ("placer", "oracle", "all", "alone:cpu", "alone:igpu", "alone:dgpu")
LOADS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
APPS = ("aes", "dpi", "md5")
# The saving that the predecessor for one application reports.
PREDECESSOR = 3.5
WANTED = 2.5
SECONDS = 4


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """A mix of three applications at fractions of the capacity of all devices."""
    yield []
    most_pps = capacity_pps(Load([App(app, 1.0) for app in APPS], SECONDS))
    loads = LOADS[1::3] if setup.is_quick else LOADS
    rows = []
    for load in loads:
        mix = Load([App(app, load * most_pps / len(APPS)) for app in APPS], SECONDS)
        for chooser in CHOOSERS:
            course = run(mix, chooser)
            served_pkts = course.sum("served_pkts", first=10)
            joules = sum(row["joules"] for row in course.rows[10:])
            rows.append({
                "load": load, "chooser": chooser, "mpps": load * most_pps / 1e6,
                "served": course.served(10), "late": course.late(10), "watts": course.watts(10),
                "nj_per_bit": joules * 1e9 / max(1.0, served_pkts * 512 * 8),
            })  # fmt: skip
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def claims(rows: list[Row]) -> list[Verdict]:
    """The least energy without losing a packet."""
    mine = {f"{row['load']:.0%}": row for row in rows if row["chooser"] == "placer"}
    every = {f"{row['load']:.0%}": row for row in rows if row["chooser"] == "all"}
    saved = {k: every[k]["nj_per_bit"] / row["nj_per_bit"] for k, row in mine.items()}
    best = max(saved, key=lambda k: saved[k])
    return [
        at_least("energy a bit of all devices always, over the placer's, at its best load",
                 {best: saved[best]}, WANTED, times),
        at_least("the same at every load", saved, 1, times),
        at_least("served", {k: row["served"] for k, row in mine.items()}, 0.95, percent),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Energy per bit by load."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    figure.suptitle(f"energy by load, three applications ({setup.label}; stand-ins)", fontsize=10)
    axis = figure.add_subplot()
    for colour, chooser in zip(COLOURS, CHOOSERS, strict=False):
        # A chooser that drops a tenth of the packets saves nothing.
        mine = [row for row in rows if row["chooser"] == chooser and row["served"] > 0.9]
        x, y = [100 * row["load"] for row in mine], [row["nj_per_bit"] for row in mine]
        axis.plot(x, y, "o-", color=colour, markersize=3, label=chooser)
    axis.set_xlabel("per cent of what all devices can do")
    axis.set_ylabel("nJ a bit, modelled")
    axis.set_yscale("log")
    axis.legend(fontsize=8)
    return figure


COLUMNS = (
    ("load", "load", lambda v: f"{v:.0%}"),
    ("mpps", "Mpps", lambda v: f"{v:.2f}"),
    ("chooser", "who decides", shown),
    ("served", "served", lambda v: f"{v:.1%}"),
    ("late", "late", lambda v: f"{v:.2%}"),
    ("watts", "W", lambda v: f"{v:.1f}"),
    ("nj_per_bit", "nJ a bit", lambda v: f"{v:.2f}"),
)

EXPERIMENT = Experiment(
    "pythia_energy", "Pythia: energy by load, beside all devices always", plan, "pythia_energy", (),
    f"the predecessor reports up to {PREDECESSOR}x less energy than all devices always, for one "
    f"application; devices are stand-ins, {standins()['origin']}.",
)  # fmt: skip
