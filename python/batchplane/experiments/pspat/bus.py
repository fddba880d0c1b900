# SPDX-License-Identifier: BSD-3-Clause
"""bus.py - `pspat_bus`: a stage behind the scheduler that ignores weights, like a NIC's bus."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...base.percentile import percentile
from ...egress.replay import Arrivals, Flows
from ...egress.virtual import run_virtual
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_most, in_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCIPLINES = ("drr", "wf2q_plus", "qfq", "qfq_plus")
WEIGHTS = (8, 1, 1)
BUS_PKT_NS = 100
PKT_BYTES = 60
# A link on which a packet takes 105 ns; the bus carries one in 100 ns.
PACED_BPS = PKT_BYTES * 8 * 1_000_000_000 // 105
LINKS = {"not paced": 0, "paced below the bus": PACED_BPS}


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Three flows at full rate, each with its own queue on a bus that serves them in turn."""
    yield []
    n_pkts = 30_000 if setup.is_quick else 300_000
    rows = [_row(name, link, n_pkts, f) for name in DISCIPLINES for link in LINKS for f in range(3)]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(discipline: str, link: str, n_pkts: int, flow: int) -> Row:
    gap_ns = 40
    order = [k % 3 for k in range(n_pkts)]
    arrivals = Arrivals([k // 3 * gap_ns for k in range(n_pkts)], order, [PKT_BYTES] * n_pkts)
    flows = Flows(["8", "1", "1 too"], list(WEIGHTS), [PKT_BYTES] * 3, [100] * 3)
    result = run_virtual(
        discipline, flows, [0, 1, 2], arrivals, take_pkt_ns=5, release_pkt_ns=5,
        rate_bps=LINKS[link], bus_pkt_ns=BUS_PKT_NS, bus_queues=3, bus_ring_pkts=128,
    )  # fmt: skip
    end_ns = arrivals.ns[-1]
    done = [
        k for k in range(n_pkts) if result.is_sent[k] and end_ns // 4 <= result.done_ns[k] <= end_ns
    ]
    mine = [k for k in done if order[k] == flow]
    behind = sorted((result.done_ns[k] - result.release_ns[k]) / BUS_PKT_NS for k in mine)
    return {
        "discipline": discipline,
        "link": link,
        "weight": WEIGHTS[flow],
        "flow": flow,
        "share": len(mine) / len(done),
        "behind_p99_pkts": percentile(behind, 0.99),
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """Shares, and the packets' waiting time behind the scheduler."""
    percent = lambda value: f"{value:.1%}"  # noqa: E731
    waits = lambda value: f"{value:.1f} packets"  # noqa: E731

    def of(link: str, key: str) -> dict[str, float]:
        return {
            str(row["discipline"]): float(row[key])
            for row in rows
            if row["link"] == link and row["flow"] == 0
        }

    return [
        in_range("a bus in turn undoes weights of 8 : 1 : 1", of("not paced", "share"), 0.30, 0.36,
                 percent, is_more_better=False),
        in_range("paced below it they hold", of("paced below the bus", "share"), 0.79, 0.81,
                 percent),
        at_most("and packets hardly wait there (p99)", of("paced below the bus", "behind_p99_pkts"),
                4, waits),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Shares of the three flows, paced and not."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    figure.suptitle(f"8 : 1 : 1 through a bus that serves in turn ({setup.label})", fontsize=10)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, link in zip(axes, LINKS, strict=True):
        for flow in range(3):
            mine = [r for r in rows if r["link"] == link and r["flow"] == flow]
            places = [i + 0.27 * (flow - 1) for i in range(len(mine))]
            axis.bar(places, [r["share"] for r in mine], width=0.25, color=COLOURS[flow],
                     label=f"weight {WEIGHTS[flow]}")  # fmt: skip
        axis.set_xticks(range(len(DISCIPLINES)), DISCIPLINES, fontsize=8)
        axis.axhline(0.8, color="#444444", linewidth=0.8)
        axis.set_title(link, fontsize=9)
    axes[0].set_ylabel("share of the bus")
    axes[0].legend(fontsize=8)
    return figure


COLUMNS = (
    ("discipline", "scheduler", shown),
    ("link", "link", shown),
    ("weight", "weight", shown),
    ("share", "share", lambda v: f"{v:.3f}"),
    ("behind_p99_pkts", "behind the scheduler, p99 packets", lambda v: f"{v:.1f}"),
)

EXPERIMENT = Experiment(
    "pspat_bus", "PSPAT: a bus behind the scheduler", plan, "pspat_bus", (),
    "the bus carries a packet in 100 ns, in turn from a ring of 128 for each flow.",
)  # fmt: skip
