# SPDX-License-Identifier: BSD-3-Clause
"""interference.py - `pythia_interference`: pairs of applications, predicted and observed."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import TYPE_CHECKING

from ...placement.plant import App, Load, run, solve, standins
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APPS = ("aes", "dpi", "md5")
RATES = {"low": 300_000.0, "middle": 900_000.0, "high": 2_000_000.0}
SECONDS = 4
SETTLED = 20  # periods; the placer has learnt the slow-downs by then


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Every pair at three loads: the delay that a plan predicts, and the observed one."""
    yield []
    pairs = list(itertools.combinations(APPS, 2))
    rows = [_row(pair, load) for pair in pairs for load in RATES]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(pair: tuple[str, str], load: str) -> Row:
    mix = Load([App(app, RATES[load]) for app in pair], SECONDS)
    oracle = run(mix, "oracle")
    promised = solve(mix)["outcome"]
    seen = {app: max(row["apps"][app]["delay_max_ns"] for row in oracle.rows[1:]) for app in pair}
    placer = run(mix, "placer")
    return {
        "pair": " + ".join(pair),
        "load": load,
        "places": ", ".join(f"{a}: {p}" for a, p in oracle.places(-1).items()),
        "promised_ms": max(promised["delay_ns"].values()) / 1e6,
        "seen_ms": max(seen.values()) / 1e6,
        "over": max(seen[app] / promised["delay_ns"][app] for app in pair),
        "late": oracle.late(1),
        "placer_late": placer.late(SETTLED),
        "placer_served": placer.served(SETTLED),
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """Predictions hold, even for a chooser that has to learn the slow-downs."""

    def by(key: str) -> dict[str, float]:
        return {f"{row['pair']}, {row['load']}": row[key] for row in rows}

    return [
        at_most("packets late under plans that know who slows whom", by("late"), 0.01, percent),
        at_most("packets late under the placer, which had to learn it", by("placer_late"), 0.01,
                percent),
        at_least("served by the placer", by("placer_served"), 0.95, percent),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """The longest observed delay by the predicted one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, 4.4), layout="constrained")
    figure.suptitle(f"pairs of applications ({setup.label}; stand-ins)", fontsize=10)
    axis = figure.add_subplot()
    for colour, load in zip(COLOURS, RATES, strict=False):
        mine = [row for row in rows if row["load"] == load]
        x, y = [row["promised_ms"] for row in mine], [row["seen_ms"] for row in mine]
        axis.plot(x, y, "o", color=colour, label=f"{load} load")
    most = max(max(row["promised_ms"], row["seen_ms"]) for row in rows)
    axis.plot([0, most], [0, most], color="#888888", linewidth=0.8)
    axis.set_xlabel("promised, ms")
    axis.set_ylabel("the longest that was seen, ms")
    axis.legend(fontsize=8)
    return figure


COLUMNS = (
    ("pair", "applications", shown),
    ("load", "load", shown),
    ("places", "devices", shown),
    ("promised_ms", "promised, ms", lambda v: f"{v:.2f}"),
    ("seen_ms", "seen, ms", lambda v: f"{v:.2f}"),
    ("late", "late", lambda v: f"{v:.2%}"),
    ("placer_late", "late, learnt", lambda v: f"{v:.2%}"),
    ("placer_served", "served, learnt", lambda v: f"{v:.1%}"),
)

EXPERIMENT = Experiment(
    "pythia_interference", "Pythia: pairs of applications, predicted and seen", plan,
    "pythia_interference", (), f"devices are stand-ins, {standins()['origin']}.",
)  # fmt: skip
