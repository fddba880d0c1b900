# SPDX-License-Identifier: BSD-3-Clause
"""fig1.py - the largest rate of a module by the size of its input batches (figure 1)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ..plot_base import COLOURS
from ..units import short_rate
from .case import Case
from .experiment import MEASURED, Experiment, Outcome, Results, Row, Setup, shown
from .module_profile import KINDS, modules_of, time_ns
from .verdict import Verdict, at_least, in_range, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (1, 2, 4, 8, 16, 32)


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """No pipeline runs: modules by themselves."""
    yield []
    rows = [
        {
            "module": module["kind"],
            "papers_name": KINDS[module["kind"]] or "-",
            **{f"rate_{n}_pps": n / max(time_ns(module, n), 1e-3) * 1e9 for n in SIZES},
            "gain": 32 * time_ns(module, 1) / max(time_ns(module, 32), 1e-3),
        }
        for module in modules_of(setup)
    ]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def claims(rows: list[Row]) -> list[Verdict]:
    """What the paper says of figure 1; `cost` is made to gain more and stays out."""
    gains = {row["module"]: row["gain"] for row in rows}
    papers = {
        row["module"]: row["gain"] for row in rows if row["papers_name"] not in ("-", "Bypass")
    }
    return [
        in_range(
            "batches of 32 bring 2 to 5 times the rate of single packets", papers, 2, 5, times
        ),
        at_least("ours: no module is slower for being batched", gains, 1.0, times),
    ]


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Rate of each module against batch size, and the paper's band from its single packets on."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.5), layout="constrained")
    axis = figure.subplots()
    for i, row in enumerate(rows):
        rates = [row[f"rate_{n}_pps"] / row["rate_1_pps"] for n in SIZES]
        name = row["module"] + (f" ({row['papers_name']})" if row["papers_name"] != "-" else "")
        style = "-o" if i < len(COLOURS) else "--s"
        axis.plot(
            SIZES, rates, style, color=COLOURS[i % len(COLOURS)], label=name, markersize=3.5,
            linewidth=1.1,
        )  # fmt: skip
    axis.axhspan(2, 5, color="black", alpha=0.1, lw=0)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.set_xticks(SIZES, [str(n) for n in SIZES])
    axis.set_xlabel("batch size [packets]")
    axis.set_ylabel("rate / rate of single packets")
    axis.set_title("paper: 2 to 5 times at a batch of 32 (band)", fontsize=9, loc="right")
    axis.grid(True, color="#dddddd", linewidth=0.6)
    figure.suptitle(f"rate against batch size ({setup.origin})", fontsize=10)
    figure.legend(fontsize=8, loc="outside right center")
    return figure


COLUMNS = (
    ("module", "<module", shown),
    ("papers_name", "<papers' name", shown),
    *((f"rate_{n}_pps", f"batch {n}", short_rate) for n in SIZES),
    ("gain", "32 / 1", times),
)

EXPERIMENT = Experiment(
    "fig1", "rate of modules against batch size (figure 1)", plan, "fig1", (),
    "Modules by themselves, without the engine around them.", (MEASURED,),
)  # fmt: skip
