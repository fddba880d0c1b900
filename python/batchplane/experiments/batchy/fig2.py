# SPDX-License-Identifier: BSD-3-Clause
"""fig2.py - the toy split of figure 2: k batches of k packets through a k-way split.

A batch costs one unit and each of its packets one more unit; everything else is free.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...lang.pipeline import Options, Pipeline
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, close_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNIT_NS = 1000
_WAYS = (2, 4, 8, 16)


def pipeline(ways: int) -> dict[str, Any]:
    """Bursts of `ways` packets, one packet to each of `ways` functions."""
    built = Pipeline(f"split_{ways}", Options(idle="hold"))
    port = built.port("link", "ring", size_pkts=64)
    # A burst comes long after even the unbuffered execution of the previous one.
    rate_pps = ways / (4 * ways * 2 * _UNIT_NS) * 1e9
    built.generator("load", port, rate_pps=rate_pps, burst_pkts=ways)
    entry = built.module("in", "port_in", port=port)
    split = built.module("split", "split", mode="round_robin", gates=ways)
    entry >> split
    for i in range(ways):
        leaf = built.module(f"nf_{i}", "cost", cost_per_batch_ns=_UNIT_NS, cost_per_pkt_ns=_UNIT_NS)
        end = built.module(f"out_{i}", "sink")
        split[i] >> leaf >> end
        built.flow(f"flow_{i}", [entry, split, leaf, end])
    return built.to_json()


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Null against buffers of k packets."""
    periods = 20 if setup.is_quick else 100
    cases = [
        Case(
            f"{ways}/{name}",
            json.dumps({**pipeline(ways), "source_map": {}}),
            controller,
            costs=setup.costs,
            warmup_periods=1,
            periods=periods,
        )
        for ways in _WAYS
        for name, controller in (("unbuffered", "null"), ("buffered", f"fixed({ways})"))
    ]
    results = yield cases
    rows = [_row(ways, results) for ways in _WAYS]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(ways: int, results: Results) -> Row:
    def units(name: str) -> float:
        """Cost of k x k packets: batches of the measured mean size, and the packets themselves."""
        mean_pkts = results[f"{ways}/{name}"]["batch_mean_pkts"]
        return float(ways * ways / mean_pkts + ways * ways)

    return {
        "ways": ways,
        "unbuffered_units": units("unbuffered"),
        "buffered_units": units("buffered"),
        "paper_unbuffered_units": 2 * ways * ways,
        "paper_buffered_units": ways + ways * ways,
        "unbuffered_delay_max_ns": results[f"{ways}/unbuffered"]["delay_max_ns"],
        "buffered_delay_max_ns": results[f"{ways}/buffered"]["delay_max_ns"],
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """The closed forms."""
    found = []
    for row in rows:
        k = row["ways"]
        found.append(
            close_to(
                f"unbuffered, {k} ways: 2k^2 units", row["unbuffered_units"],
                row["paper_unbuffered_units"], 0.01, lambda v: f"{v:.1f}",
            )
        )  # fmt: skip
        found.append(
            close_to(
                f"buffered, {k} ways: k + k^2 units", row["buffered_units"],
                row["paper_buffered_units"], 0.01, lambda v: f"{v:.1f}",
            )
        )  # fmt: skip
    return found


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Cost in units by ways, with our points on the paper's curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(f"k batches of k packets through a k-way split ({setup.origin})", fontsize=10)
    ways = [row["ways"] for row in rows]
    for i, (name, law) in enumerate((("unbuffered", "2k^2"), ("buffered", "k + k^2"))):
        colour = COLOURS[i]
        paper = [row[f"paper_{name}_units"] for row in rows]
        axis.plot(ways, paper, color=colour, label=f"paper, {name}: ${law}$")
        mine = [row[f"{name}_units"] for row in rows]
        axis.plot(ways, mine, "o", color=colour, label=f"simulated, {name}")
    axis.set_xlabel("ways k")
    axis.set_ylabel("units of cost")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.grid(True, color="#dddddd", linewidth=0.6)
    axis.legend(fontsize=8)
    return figure


COLUMNS = (
    ("ways", "ways", shown),
    ("unbuffered_units", "unbuffered", lambda value: f"{value:.1f}"),
    ("paper_unbuffered_units", "paper", shown),
    ("buffered_units", "buffered", lambda value: f"{value:.1f}"),
    ("paper_buffered_units", "paper", shown),
)

EXPERIMENT = Experiment(
    "fig2", "the toy split: cost with and without buffers (figure 2)", plan, "fig2",
    ("null", "fixed(k)"),
)  # fmt: skip
