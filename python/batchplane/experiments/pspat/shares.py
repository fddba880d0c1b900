# SPDX-License-Identifier: BSD-3-Clause
"""shares.py - `pspat_shares`: whether each flow gets its share, and its largest deviation."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import TYPE_CHECKING

from ...egress.replay import Arrivals, Flows, replay
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCIPLINES = ("fifo", "drr", "wf2q_plus", "qfq", "qfq_plus")
MOST_PKTS = {"wf2q_plus": 2, "qfq": 4, "qfq_plus": 5}
LMAX_BYTES = 1500
RATE_BPS = 10_000_000_000
# HTB on this project's kernels gave these shares to three flooding senders at 8 : 1 : 1.
HTB_PERCENT = (46, 32, 23)


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Three senders at 8 : 1 : 1, and 32 with weights from 1 to 64; all at full rate."""
    yield []
    n_pkts = 30_000 if setup.is_quick else 1_000_000
    sets = {"8 : 1 : 1": [8, 1, 1], "32 flows, 1 to 64": [1 + k * 37 % 64 for k in range(32)]}
    rows = [_row(d, label, weights, n_pkts) for label, weights in sets.items() for d in DISCIPLINES]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(discipline: str, label: str, weights: list[int], n_pkts: int) -> Row:
    """`n_pkts` departures while every flow has packets."""
    rng = random.Random(len(weights))
    total_weight = sum(weights)
    # All send equally many packets; the flow with the largest share needs the most.
    each = int(n_pkts * max(weights) / total_weight * 1.2) + 100
    order = [k for _ in range(each) for k in range(len(weights))]
    flows = Flows(
        [str(k) for k in range(len(weights))], weights, [LMAX_BYTES] * len(weights),
        [1 << 30] * len(weights),
    )  # fmt: skip
    sizes = [rng.randint(64, LMAX_BYTES) for _ in order]
    result = replay(discipline, flows, Arrivals([0] * len(order), order, sizes), RATE_BPS)
    sent = [0] * len(weights)
    worst = 0.0
    total = 0
    for flow, size in zip(result.flow[:n_pkts], result.len_bytes[:n_pkts], strict=True):
        share = weights[flow] / total_weight
        worst = max(worst, share * (total + size) - sent[flow])
        total += size
        sent[flow] += size
        worst = max(worst, sent[flow] - share * total)
    heaviest = max(range(len(weights)), key=lambda k: weights[k])
    return {
        "load": label,
        "discipline": discipline,
        "share_wanted": weights[heaviest] / total_weight,
        "share": sent[heaviest] / total,
        "worst_pkts": worst / LMAX_BYTES,
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """Rates follow weights, and no flow is ever far from its share."""
    off = {
        row["discipline"]: abs(row["share"] / row["share_wanted"] - 1)
        for row in rows
        if row["load"] == "8 : 1 : 1" and row["discipline"] != "fifo"
    }
    found = [
        at_most("shares follow weights (8 : 1 : 1, all flat out)", off, 0.01, lambda v: f"{v:.2%}")
    ]
    for name, most in MOST_PKTS.items():
        worst = {row["load"]: float(row["worst_pkts"]) for row in rows if row["discipline"] == name}
        claim = f"{name}: bytes within {most} packets of fair at any time"
        found.append(at_most(claim, worst, most, lambda v: f"{v:.2f} packets"))
    return found


def draw(rows: list[Row], setup: Setup) -> Figure:
    """The share of the heaviest flow, actual and wanted."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(f"share of the flow of weight 8 among 8 : 1 : 1 ({setup.label})", fontsize=10)
    mine = [row for row in rows if row["load"] == "8 : 1 : 1"]
    names = [row["discipline"] for row in mine]
    axis.bar(names, [row["share"] for row in mine], color=COLOURS[0])
    axis.axhline(0.8, color="#444444", linewidth=0.8, label="its weight")
    axis.axhline(HTB_PERCENT[0] / 100, color=COLOURS[1], linestyle="--", linewidth=0.8,
                 label="HTB of the kernel, measured")  # fmt: skip
    axis.set_ylabel("share of the link")
    axis.legend(fontsize=8)
    return figure


COLUMNS = (
    ("load", "weights", shown),
    ("discipline", "scheduler", shown),
    ("share_wanted", "share wanted", lambda v: f"{v:.3f}"),
    ("share", "share", lambda v: f"{v:.3f}"),
    ("worst_pkts", "farthest from fair, packets", lambda v: f"{v:.2f}"),
)

EXPERIMENT = Experiment(
    "pspat_shares", "PSPAT: shares of flows that never pause", plan, "pspat_shares", (),
    "packets of 64 to 1500 bytes; the kernel's HTB is the measured baseline in the figure.",
)  # fmt: skip
