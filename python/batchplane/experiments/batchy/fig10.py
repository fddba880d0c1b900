# SPDX-License-Identifier: BSD-3-Clause
"""fig10.py - a mobile gateway whose bulk traffic breaks other flows' SLOs: the pipeline is cut,
live (figure 10), and joined again at low load.

Two of eight users have bearer 0 with an SLO of 1 ms; the other bearer of all users is bulk and
takes 250,000 + 50,000 n cycles per batch. Two more workers are idle.
"""

from __future__ import annotations

from collections.abc import Generator
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...base.promise import DEFAULT_PERCENTILE
from ...base.units import short_duration, short_rate
from ...plots.base import COLOURS, legend_below
from ..common.case import NO_LIMIT, Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, in_range, percent, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLO_NS = 1_000_000
LATE_PKTS = 1 - DEFAULT_PERCENTILE
MASTER_PERIODS = 20
# In periods: the master acts after the 20th, the load drops after the 60th.
FULL, FALLEN, END = 20, 60, 140
SETTLED = 5  # periods after a change
LIGHT_PPS = 2_000
FLOW, MODULE = "dl_0_0", "ttl"

# By label: controller, its rule for cuts, and whether the bulk's queue holds back.
RUNS = {
    "one worker": ("full", "off", True),
    "cut, queue drops": ("full", "greedy", False),
    "cut, queue holds back": ("full", "greedy", True),
    "ours: by load, too": ("optimal", "balance", False),
}
CUT = ("cut, queue drops", "cut, queue holds back")


def make_case(setup: Setup, run: str) -> Case:
    """Full load from the start, and low load from period 60."""
    controller, decompose, waits = RUNS[run]
    period_ns = 20_000_000 if setup.is_quick else 50_000_000
    at = FALLEN * period_ns
    return Case(
        run,
        "mgw",
        controller,
        {
            "vxlan": 1, "bearers": 2, "users": 8, "qos_users": 2, "fib_size": 2500,
            "bearer_cycles": 10, "bearer_pkt_cycles": 10,
            "bulk_cycles": 250_000, "bulk_pkt_cycles": 50_000,
            "slo_ns": SLO_NS, "saturate": True, "spare": 2, "bulk_waits": waits,
            "age_limit": NO_LIMIT,
        },
        settings={"decompose": decompose, "master_periods": MASTER_PERIODS},
        sets=("idle=hold",),
        events=(
            f"events:\n  - {{at: {at}ns, set: 'load.saturate=false'}}\n"
            f"  - {{at: {at}ns, set: 'load.rate={LIGHT_PPS}'}}\n"
        ),
        costs="paper",
        period_ns=period_ns,
        periods=END,
        watched_module=MODULE,
        watched_flow=FLOW,
    )  # fmt: skip


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Each run once."""
    cases = {run: make_case(setup, run) for run in RUNS}
    results = yield list(cases.values())
    series = {run: results[case.key]["series"] for run, case in cases.items()}
    moves = {run: results[case.key]["moves"] for run, case in cases.items()}
    period_ns = cases["one worker"].period_ns
    rows = [row_of(run, series[run], moves[run], period_ns, part) for run in RUNS for part in PARTS]
    return Outcome(
        rows, COLUMNS, claims(rows, moves), lambda: draw(series, moves, period_ns), series
    )


# The first period of each part of a run, and the one after its last.
PARTS = {
    "full load": (SETTLED, FULL),
    "after the cut": (FULL + SETTLED, FALLEN),
    "little load": (FALLEN + SETTLED, END),
}


def row_of(
    run: str, columns: dict[str, list[Any]], moves: list[Row], period_ns: int, part: str
) -> Row:
    """The rate, the first flow's delay and late packets, and the share of SLO violations, in one
    part of a run."""
    begin, end = PARTS[part]
    inside = [m for m in moves if (begin - SETTLED) * period_ns < m["time_ns"] <= end * period_ns]
    delays = [ns for ns in columns["delay_ns"][begin:end] if ns]
    pkts, late_pkts = (sum(columns[name][begin:end]) for name in ("pkts", "late_pkts"))
    return {
        "run": run,
        "part": part,
        "rate_pps": fmean(columns["out_pps"][begin:end]),
        "delay_ns": fmean(delays) if delays else 0.0,
        "violated_ratio": fmean([float(late) for late in columns["is_violated"][begin:end]]),
        "late_pkts_ratio": late_pkts / pkts if pkts else 0.0,
        "moves": ", ".join(f"{m['module']} > {m['worker']}" for m in inside),
    }


def claims(rows: list[Row], moves: dict[str, list[Row]]) -> list[Verdict]:
    """The paper's claims about figure 10, and ours about joining again."""

    def value(run: str, part: str, key: str) -> float:
        return next(float(r[key]) for r in rows if (r["run"], r["part"]) == (run, part))

    def gain(run: str) -> dict[str, float]:
        after, before = value(run, "after the cut", "rate_pps"), value(run, "full load", "rate_pps")
        return {run: after / before}

    def slos(run: str, part: str) -> dict[str, float]:
        return {run: value(run, part, "delay_ns") / SLO_NS}

    ours = "ours: by load, too"
    cut = {run: [m["module"] for m in moves[run] if m["reason"] == "inherent"] for run in moves}
    behind = {run: float(set(cut[run]) == {"dl_user_1", "ul_user_1"}) for run in CUT}
    back = {run: float(sum(m["reason"] == "return" for m in moves[run])) for run in (*CUT, ours)}
    return [
        in_range(
            "bearer 0 waits for several times the 1 ms that it is promised (4)",
            slos("one worker", "full load"), 2.0, 10.0, times,
        ),
        at_least(
            "the cut is made behind the bearer selector, in both directions", behind, 1.0, yes
        ),
        at_most(
            "and the delay falls below the SLO at once",
            {CUT[0]: value(CUT[0], "after the cut", "violated_ratio")}, 0.0, percent,
        ),
        at_most(
            "also where the bulk's queue holds back",
            {CUT[1]: value(CUT[1], "after the cut", "violated_ratio")}, 0.0, percent,
        ),
        at_least("more than 10 times the rate", gain(CUT[0]), 10.0, times),
        at_least(
            "also where the bulk's queue holds back", gain(CUT[1]), 10.0, times
        ),
        at_most(
            "ours: the same with optimal and a rule that looks at loads, too",
            {ours: value(ours, "after the cut", "violated_ratio")}, 0.0, percent,
        ),
        at_least("ours: and the rate", gain(ours), 10.0, times),
        in_range("ours: once there is little to do, both parts come back", back, 2.0, 2.0, count),
        # A period has two packets of a flow then: too few for a percentile.
        at_most(
            "ours: with the SLO kept (late packets of all of bearer 0's at little load)",
            {ours: value(ours, "little load", "late_pkts_ratio")}, LATE_PKTS, percent,
        ),
        at_most(
            "ours: and nothing goes back and forth (4 moves in all)",
            {run: float(len(moves[run])) for run in (*CUT, ours)}, 4.0, count,
        ),
    ]  # fmt: skip


def count(value: float) -> str:
    return f"{value:.0f}"


def yes(value: float) -> str:
    return "yes" if value else "no"


def draw(
    series: dict[str, dict[str, list[Any]]], moves: dict[str, list[Row]], period_ns: int
) -> Figure:
    """Figure 10: the delay, and the rate, which the paper does not show."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 6.5), layout="constrained")
    figure.suptitle("MGW(2,8): bulk traffic is cut off, and comes back (simulated, costs: paper)")
    top, low = figure.subplots(2, 1, sharex=True)
    for c, (run, columns) in enumerate(series.items()):
        periods = range(1, len(columns["time_ns"]) + 1)
        colour = COLOURS[c % len(COLOURS)]
        delays = [ns / 1e6 if ns else float("nan") for ns in columns["delay_ns"]]
        top.plot(periods, delays, color=colour, label=run, linewidth=1.2)
        low.plot(periods, columns["out_pps"], color=colour, linewidth=1.2)
    top.axhline(SLO_NS / 1e6, color="black", linestyle=":")
    for axis in (top, low):
        axis.set_yscale("log")
        axis.grid(True, color="#dddddd", linewidth=0.6)
        for at in sorted({m["time_ns"] // period_ns for m in moves[CUT[0]]}):
            axis.axvline(at, color="#999999", linewidth=0.8, linestyle="--")
    top.set_ylabel("p95 delay of bearer 0 [ms]")
    low.set_ylabel("rate [pps]")
    low.set_xlabel("control period (dashed: parts move)")
    legend_below(figure, top)
    return figure


COLUMNS = (
    ("run", "<run", shown),
    ("part", "<part", shown),
    ("rate_pps", "rate", short_rate),
    ("delay_ns", "p95 of bearer 0", short_duration),
    ("violated_ratio", "violated", lambda value: f"{value:.1%}"),
    ("late_pkts_ratio", "late packets", lambda value: f"{value:.1%}"),
    ("moves", "<moves", shown),
)

EXPERIMENT = Experiment(
    "fig10", "a mobile gateway is cut while it runs, and joined again (figure 10)", plan, "fig10",
    tuple(RUNS),
    "Costs of the papers' scripts; periods of 50 ms (quick: 20 ms) instead of 3 s; bulk of all "
    "eight users.",
)  # fmt: skip
