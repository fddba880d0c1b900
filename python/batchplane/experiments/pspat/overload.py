# SPDX-License-Identifier: BSD-3-Clause
"""overload.py - `pspat_overload`: which flows keep their share if the scheduler is the
bottleneck."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import TYPE_CHECKING

from ...base.percentile import percentile
from ...egress.replay import Arrivals, Flows
from ...egress.virtual import run_virtual
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCIPLINES = ("fifo", "drr", "wf2q_plus", "qfq", "qfq_plus")
# Each enqueue is followed at once by a dequeue, so no backlog forms in the scheduler and weights
# have no effect; packets wait for the lock, in order.
LOCK = "one lock (as a qdisc)"
# All other flows together send this multiple of the scheduler's capacity.
LOADS = (0.5, 1, 1.5, 2, 4)
COST_NS = 15  # to take a packet in, and again to release it
OTHERS = 32
WEIGHT = 50
_LIMIT_PKTS = 100
_WATCHED_LIMIT_PKTS = 1000
PKT_BYTES = 60


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """One flow of weight 50 at half its share; 32 of weight 1, one client each, flood more and
    more."""
    yield []
    n_pkts = 20_000 if setup.is_quick else 60_000
    rows = [_row(name, load, n_pkts) for name in (*DISCIPLINES, LOCK) for load in LOADS]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _arrivals(load: float, n_pkts: int) -> Arrivals:
    rng = random.Random(1)
    pps = 1e9 / (2 * COST_NS)
    watched_gap_ns = 1e9 / (pps * WEIGHT / (WEIGHT + OTHERS) / 2)
    other_gap_ns = OTHERS * 1e9 / (load * pps)
    rows = [(int((k + rng.random()) * watched_gap_ns), 0) for k in range(n_pkts)]
    n_each = int(n_pkts * watched_gap_ns / other_gap_ns)
    for flow in range(1, OTHERS + 1):
        rows += [(int((k + rng.random()) * other_gap_ns), flow) for k in range(n_each)]
    rows.sort()
    return Arrivals([ns for ns, _ in rows], [flow for _, flow in rows], [PKT_BYTES] * len(rows))


def _row(name: str, load: float, n_pkts: int) -> Row:
    """The watched packets' delays, once queues have filled."""
    flows = Flows(
        [str(f) for f in range(OTHERS + 1)], [WEIGHT] + [1] * OTHERS, [PKT_BYTES] * (OTHERS + 1),
        [_WATCHED_LIMIT_PKTS] + [_LIMIT_PKTS] * OTHERS,
    )  # fmt: skip
    arrivals = _arrivals(load, n_pkts)
    result = run_virtual(
        "drr" if name == LOCK else name, flows, list(range(OTHERS + 1)), arrivals,
        is_immediate=int(name == LOCK), take_pkt_ns=COST_NS, release_pkt_ns=COST_NS,
    )  # fmt: skip
    start_ns = arrivals.ns[-1] // 4
    watched = [
        k for k, flow in enumerate(arrivals.flow) if flow == 0 and arrivals.ns[k] >= start_ns
    ]
    delays = sorted(
        float(result.release_ns[k] - arrivals.ns[k]) for k in watched if result.is_sent[k]
    )
    return {
        "scheduler": name,
        "load": load,
        "p50_us": percentile(delays, 0.5) / 1e3,
        "p99_us": percentile(delays, 0.99) / 1e3,
        "lost": 1 - len(delays) / len(watched),
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """From the load at which the scheduler becomes the bottleneck to four times that."""
    fair = [name for name in DISCIPLINES if name != "fifo"]
    of = {(row["scheduler"], row["load"]): row for row in rows}

    def growth(key: str, first: float) -> dict[str, float]:
        return {
            f"{name} at {load:g}x": float(of[name, load][key]) / float(of[name, first][key]) - 1
            for name in fair
            for load in LOADS
            if load > first
        }

    percent = lambda value: f"{value:+.0%}"  # noqa: E731
    lost = {f"{n} at {load:g}x": float(of[n, load]["lost"]) for n in fair for load in LOADS}
    worse = float(of[LOCK, 2]["p99_us"]) / float(of["qfq", 2]["p99_us"])
    return [
        at_most("the median of a flow within its share stays (10 %)", growth("p50_us", 1), 0.1,
                percent),
        at_most("its p99 stays (10 %)", growth("p99_us", 1), 0.1, percent),
        at_most("none of its packets are lost", lost, 0.0, lambda v: f"{v:.1%}"),
        at_least("under one lock it waits with all others (p99 at 2x, over QFQ's)", {LOCK: worse},
                 10, lambda v: f"{v:.0f}x"),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """p99 by load of the others."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(
        f"a flow at half its share, the scheduler overloaded ({setup.label})", fontsize=10
    )
    for i, name in enumerate((*DISCIPLINES, LOCK)):
        mine = [row for row in rows if row["scheduler"] == name]
        axis.plot([r["load"] for r in mine], [r["p99_us"] for r in mine], "o-", markersize=4,
                  color=COLOURS[i % len(COLOURS)], label=name)  # fmt: skip
    axis.set_yscale("log")
    axis.set_xlabel("sent by the others / what the scheduler can do")
    axis.set_ylabel("p99 of the flow, us")
    axis.grid(True, color="#dddddd", linewidth=0.6)
    axis.legend(fontsize=8)
    return figure


COLUMNS = (
    ("scheduler", "scheduler", shown),
    ("load", "load of others", lambda v: f"{v:g}x"),
    ("p50_us", "p50 us", lambda v: f"{v:.2f}"),
    ("p99_us", "p99 us", lambda v: f"{v:.2f}"),
    ("lost", "lost", lambda v: f"{v:.1%}"),
)

EXPERIMENT = Experiment(
    "pspat_overload", "PSPAT: the scheduler as the bottleneck", plan, "pspat_overload", (),
    "a decision costs 30 ns; clients drop packets of queues that they know to be full.",
)  # fmt: skip
