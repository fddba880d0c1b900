# SPDX-License-Identifier: BSD-3-Clause
"""tree.py - `egress_tree`: trees of subscribers with four classes, next to DPDK's rte_sched."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.problems import RunFailed
from ...daemon.process import find_program
from ...egress.models import CLASSES, LONGEST_BYTES, full_tree
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import MEASURED, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROGRAMS = ("bench_egress_tree", "bench_rte_sched")
SUBSCRIBERS = (10, 1_000, 10_000, 100_000)
LINK_BPS = 100_000_000_000
# In longest packets: a class may be off by its own weight, plus one for each smaller sibling.
_MOST_PKTS = 2 * CLASSES
_PKTS_OF_CLASS = 500
_COST, _TIMES = "ns a packet", "times as fast as rte_sched"
_FAIR, _CEILING = "longest packets from fair", "per cent off the ceiling"
_CEILED_PKTS = 1_000  # of each class: two more or less are 0.05 %


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Costs from the benchmark programs; shares and ceilings in virtual time."""
    yield []
    reason = missing()
    rows: list[Row] = []
    if reason is None:
        trials = 10 if setup.is_quick else 60
        rows += cost_rows(*(run_program(name, trials) for name in PROGRAMS))
    sizes = SUBSCRIBERS[:-1] if setup.is_quick else SUBSCRIBERS
    rows += [row for n in sizes for row in (_shares(n), _ceilings(n))]
    return Outcome(rows, COLUMNS, claims(rows, reason), lambda: draw(rows, setup))


def missing() -> str | None:
    """The reason why costs cannot be measured here, or None."""
    for name in PROGRAMS:
        if not os.access(_program(name), os.X_OK):
            return f"{name} is not built: tools/build.sh release {' '.join(PROGRAMS)}"
    return None


def _program(name: str) -> Path:
    return find_program().parent / "bench" / name


def run_program(name: str, trials: int) -> dict[str, Any]:
    """A benchmark's report on the last core; contenders take turns in every trial."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "report.json"
        core = max(os.sched_getaffinity(0))
        words = ("--only", " x 4", "--trials", str(trials), "--core", str(core))
        command = (str(_program(name)), *words, "--json", str(told))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RunFailed(f"{name} failed: {(done.stderr or done.stdout).strip()}")
        report: dict[str, Any] = json.loads(told.read_text())
        return report


def cost_rows(trees: dict[str, Any], beside: dict[str, Any]) -> list[Row]:
    """ns per packet enqueued and dequeued, and rte_sched's time relative to the tree's."""
    rows = []
    for case in (*trees["cases"], *beside["cases"]):
        subscribers, _, load = case["label"].partition(" x 4")
        for each in case["contenders"]:
            name = f"{each['name']}{load}" if load else f"{each['name']}, weights 1 to 4"
            rows.append(_row(_COST, int(subscribers), name, each["ns_per_pkt_p10"]))
        if "tree" in case["ratios"]:
            found = case["ratios"]["tree"]
            spread = f"{found['low']:.2f} to {found['high']:.2f}"
            rows.append(_row(_TIMES, int(subscribers), "weights 1 to 4", found["median"], spread))
    return rows


def _shares(subscribers: int) -> Row:
    """The largest deviation of a class from its weighted share, while all have packets."""
    bytes_of_class = LONGEST_BYTES * _PKTS_OF_CLASS
    until_ns = int(subscribers * CLASSES * bytes_of_class * 8e9 / LINK_BPS)
    (sent,) = full_tree(subscribers, LINK_BPS, 0, True, [until_ns])
    unit = sum(sent) / subscribers / sum(range(1, CLASSES + 1))
    worst = max(abs(got - unit * (1 + k % CLASSES)) for k, got in enumerate(sent))
    return _row(_FAIR, subscribers, "all busy, weights 1 to 4", worst / LONGEST_BYTES)


def _ceilings(subscribers: int) -> Row:
    """The largest deviation of a subscriber's rate from its ceiling; ceilings sum to 90 % of the
    link."""
    ceil_bps = LINK_BPS * 9 // 10 // subscribers
    # The link's capacity beyond the ceilings uses up bursts, of a millisecond or two packets.
    burst_bits = max(ceil_bps / 1e3, 2 * 8 * 1600)
    from_ns = int(1.5 * subscribers * burst_bits * 1e9 / (LINK_BPS / 10))
    for_ns = int(CLASSES * _CEILED_PKTS * LONGEST_BYTES * 8e9 / ceil_bps)
    before, after = full_tree(subscribers, LINK_BPS, ceil_bps, False, [from_ns, from_ns + for_ns])
    sent = [b - a for a, b in zip(before, after, strict=True)]
    of_subscriber = [sum(sent[k : k + CLASSES]) for k in range(0, len(sent), CLASSES)]
    wanted = ceil_bps * for_ns / 8e9
    worst = max(abs(got / wanted - 1) for got in of_subscriber)
    return _row(_CEILING, subscribers, "all busy, 90 % of the link", worst * 100)


def _row(what: str, subscribers: int, load: str, value: float, spread: str = "") -> Row:
    return {
        "what": what, "subscribers": subscribers, "load": load, "value": value, "spread": spread
    }  # fmt: skip


def claims(rows: list[Row], reason: str | None) -> list[Verdict]:
    """Our own bounds; `reason`: why costs were not measured, or None."""

    def of(what: str, sizes: tuple[int, ...] = ()) -> dict[str, float]:
        return {
            f"{row['subscribers']} x 4, {row['load']}": float(row["value"])
            for row in rows
            if row["what"] == what and (not sizes or row["subscribers"] in sizes)
        }

    def trees(size: int) -> dict[str, float]:
        return {name: ns for name, ns in of(_COST, (size,)).items() if "rte_sched" not in name}

    ns = lambda value: f"{value:.0f} ns"  # noqa: E731
    why = "" if reason is None else f"{reason}."
    return [
        at_most("a packet costs 35 ns with 4,000 subscribers of 4 classes", trees(4_000), 35, ns)
        .because(why),
        at_most("and 75 ns with 100,000", trees(100_000), 75, ns).because(why),
        at_least("2.5 times as fast as DPDK's rte_sched", of(_TIMES), 2.5, times).because(why),
        at_most("bytes of a class within 8 longest packets of its share", of(_FAIR), _MOST_PKTS,
                lambda v: f"{v:.1f} packets"),
        at_most("rates of subscribers within 0.1 % of their ceilings", of(_CEILING), 0.1,
                lambda v: f"{v:.3f} %"),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Cost by number of subscribers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(f"a packet put in and taken out, p10 ({setup.origin})", fontsize=10)
    costs = [row for row in rows if row["what"] == _COST]
    for k, load in enumerate(dict.fromkeys(row["load"] for row in costs)):
        mine = [row for row in costs if row["load"] == load]
        axis.plot(
            [row["subscribers"] for row in mine], [row["value"] for row in mine],
            "s--" if "weights" in load else "o-", markersize=4,
            color=COLOURS[k % len(COLOURS)], label=load,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlabel("subscribers, four classes each")
    axis.set_ylabel("ns")
    axis.set_ylim(bottom=0)
    axis.grid(True, color="#dddddd", linewidth=0.6)
    if costs:
        figure.legend(fontsize=7, loc="outside right upper")
    return figure


COLUMNS = (
    ("what", "what", shown),
    ("subscribers", "subscribers", shown),
    ("load", "load", shown),
    ("value", "value", lambda v: f"{v:.2f}"),
    ("spread", "95 % interval", shown),
)

EXPERIMENT = Experiment(
    "egress_tree", "Trees of subscribers with four classes: costs, shares and ceilings", plan,
    "egress_tree", (),
    "costs are measured; shares and ceilings are in virtual time, on a link of 100 Gbit/s.",
    runs=(MEASURED,),
)  # fmt: skip
