# SPDX-License-Identifier: BSD-3-Clause
"""run_order.py - the cost of the run order alone: by depth compared with by deadline.

Heavy branches next to a tight flow, at loads from light to saturated and with several batch sizes.
The rate at an SLO is the highest load at which some batch size keeps the tight flow's p95 below it.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ..common.case import NO_LIMIT, Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDERS = ("depth", "deadline")
_FULL = 32
_TRIGGERS = (0, 8, 16, _FULL)
SATURATED = 1.0
# Relative to the rate that full batches carry.
_QUICK_LOADS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, SATURATED)
_LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, SATURATED)
_WARMUP = 10
_MAX_VIOLATED = 0.005
_QUICK_POINTS, _POINTS = 8, 16


@dataclass(frozen=True)
class Mix:
    """A pipeline with heavy branches next to a tight flow."""

    label: str
    pipeline: str
    flow: str
    params: tuple[tuple[str, Any], ...] = ()


MIXES = (
    Mix("RC(16)", "robot_control", "robot", (("n", 16), ("bulk_cycles", 0), ("bulk_ns", 4_000))),
    Mix("4 heavy, 4 tight", "heavy_branches", "tight_0"),
    Mix(
        "8 heavier, 1 tight", "heavy_branches", "tight_0",
        (("heavy", 8), ("tight", 1), ("bulk_ns", 16_000)),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One load, batch size and run order: the rate, and the tight flow's delays by period."""

    order: str
    trigger: int
    load: float
    rate_pps: float
    p95_ns: list[float]
    worst_ns: float

    @property
    def middle_p95_ns(self) -> float:
        """The median over periods."""
        return statistics.median(self.p95_ns)

    def keeps(self, slo_ns: float) -> bool:
        """Whether the tight flow's p95 is below the SLO in all but a few periods."""
        late = sum(p95_ns > slo_ns for p95_ns in self.p95_ns)
        return late <= _MAX_VIOLATED * len(self.p95_ns)


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """The rate of full batches, then fractions of it, with all batch sizes and both orders."""
    full = yield [_case(m, "depth", _FULL, SATURATED, 0.0, setup) for m in MIXES]
    loads = _QUICK_LOADS if setup.is_quick else _LOADS
    cells = [
        (mix, order, trigger, load, float(full[_key(mix, "depth", _FULL, SATURATED)]["rate_pps"]))
        for mix in MIXES
        for order in ORDERS
        for trigger in _TRIGGERS
        for load in loads
    ]
    results = yield [_case(*cell, setup) for cell in cells]
    runs: dict[str, list[Run]] = {mix.label: [] for mix in MIXES}
    for mix, order, trigger, load, _ in cells:
        result = results[_key(mix, order, trigger, load)]
        runs[mix.label].append(_run(order, trigger, load, result))
    rows = [row for label, mine in runs.items() for row in table_rows(label, mine, setup)]
    return Outcome(rows, COLUMNS, claims(rows, runs), lambda: draw(rows, setup))


def _key(mix: Mix, order: str, trigger: int, load: float) -> str:
    return f"{mix.label}/{order}/{trigger}/{load}"


def _case(mix: Mix, order: str, trigger: int, load: float, full_pps: float, setup: Setup) -> Case:
    is_saturated = load == SATURATED
    rate = {} if is_saturated else {"rate_pps": round(load * full_pps)}
    own = {"saturate": is_saturated, "trigger": trigger, "age_limit": NO_LIMIT, **rate}
    return Case(
        _key(mix, order, trigger, load),
        mix.pipeline,
        "none",
        {**dict(mix.params), **own},
        sets=("idle=hold",),
        costs=setup.costs,
        warmup_periods=_WARMUP,
        periods=20 if setup.is_quick else 200,
        watched_flow=mix.flow,
        run_order=order,
    )


def _run(order: str, trigger: int, load: float, result: dict[str, Any]) -> Run:
    series = result["series"]
    p95_ns = [float(ns) for ns in series["delay_ns"][_WARMUP:]]
    worst_ns = float(max(series["delay_max_ns"][_WARMUP:]))
    return Run(order, trigger, load, float(result["rate_pps"]), p95_ns, worst_ns)


# --- rows -----------------------------------------------------------------------------------------


def table_rows(label: str, runs: Sequence[Run], setup: Setup) -> list[Row]:
    """Saturated with full batches, then the best run of each order at each SLO."""
    both = {o: next(r for r in runs if _is_full(r) and r.order == o) for o in ORDERS}
    rows = [_row(label, None, both)]
    n = _QUICK_POINTS if setup.is_quick else _POINTS
    keeping = [min(r.middle_p95_ns for r in runs if r.order == o) for o in ORDERS]
    min_ns = 1.05 * min(keeping)
    max_ns = 1.1 * max(run.middle_p95_ns for run in both.values())
    for i in range(n):
        slo_ns = min_ns * (max_ns / min_ns) ** (i / (n - 1))
        rows.append(_row(label, slo_ns, {o: best(runs, o, slo_ns) for o in ORDERS}))
    return rows


def _is_full(run: Run) -> bool:
    return run.load == SATURATED and run.trigger == _FULL


def best(runs: Sequence[Run], order: str, slo_ns: float) -> Run | None:
    """The run with the highest rate that meets the SLO."""
    kept = [run for run in runs if run.order == order and run.keeps(slo_ns)]
    return max(kept, key=lambda run: run.rate_pps, default=None)


def _row(label: str, slo_ns: float | None, runs: dict[str, Run] | dict[str, Run | None]) -> Row:
    row: Row = {"pipeline": label, "slo_ns": None if slo_ns is None else round(slo_ns)}
    for order in ORDERS:
        run = runs[order]
        row[f"{order}_pps"] = None if run is None else run.rate_pps
        row[f"{order}_trigger"] = None if run is None else run.trigger
        row[f"{order}_p95_ns"] = None if run is None else run.middle_p95_ns
        row[f"{order}_worst_ns"] = None if run is None else run.worst_ns
    depth, deadline = row["depth_pps"], row["deadline_pps"]
    row["gain"] = deadline / depth if depth and deadline else None
    return row


def claims(rows: list[Row], runs: dict[str, list[Run]]) -> list[Verdict]:
    """Where the run order costs rate and how much, and that the other order costs none."""
    points = [row for row in rows if row["slo_ns"] is not None]
    gain = {
        f"{row['pipeline']} at {short_duration(row['slo_ns'])}": row["gain"]
        for row in points
        if row["gain"] is not None
    }
    most = dict.fromkeys(runs, 0.0)
    for row in points:
        most[row["pipeline"]] = max(most[row["pipeline"]], row["gain"] or 0.0)
    full = [row for row in rows if row["slo_ns"] is None]
    delay = {row["pipeline"]: row["deadline_p95_ns"] / row["depth_p95_ns"] for row in full}
    rate = {row["pipeline"]: row["gain"] for row in full}
    return [
        at_least(
            "ours: by deadline the rate at an SLO is nowhere less (0.98)", gain, 0.98, times
        ),
        at_least("ours: at some SLO of each pipeline it is 1.2 times that by depth",
                 most, 1.2, times),
        at_most("ours: saturated, full batches: the tight flow's p95 is no longer (1.0)",
                delay, 1.0, percent),
        at_least("ours: and polls between heavy batches cost no rate (0.98)", rate, 0.98, times),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """One panel per pipeline, one line per order."""
    from matplotlib.figure import Figure

    from ...plots.base import COLOURS, legend_below

    labels = list(dict.fromkeys(row["pipeline"] for row in rows))
    figure = Figure(figsize=(4.2 * len(labels), 4.2), layout="constrained")
    figure.suptitle(f"rate at the tight flow's SLO, by run order ({setup.origin})", fontsize=10)
    panels = figure.subplots(1, len(labels), squeeze=False)[0]
    for panel, label in zip(panels, labels, strict=True):
        mine = [row for row in rows if row["pipeline"] == label and row["slo_ns"] is not None]
        for colour, order in zip(COLOURS, ORDERS, strict=False):
            panel.plot(
                [row["slo_ns"] / 1e3 for row in mine],
                [(row[f"{order}_pps"] or 0.0) / 1e6 for row in mine],
                "o-", color=colour, label=f"by {order}", linewidth=1.2, markersize=3.5,
            )  # fmt: skip
        panel.set_title(label, fontsize=10)
        panel.set_xlabel("SLO [us]")
        panel.set_ylabel("rate [Mpps]")
        panel.grid(True, color="#dddddd", linewidth=0.6)
    legend_below(figure, panels[0])
    return figure


def _or_dash(value: float | None, text: Any) -> str:
    return "-" if value is None else str(text(value))


COLUMNS = (
    ("pipeline", "<pipeline", shown),
    ("slo_ns", "SLO", lambda value: "saturated" if value is None else short_duration(value)),
    ("depth_pps", "by depth", lambda value: _or_dash(value, short_rate)),
    ("deadline_pps", "by deadline", lambda value: _or_dash(value, short_rate)),
    ("gain", "gain", lambda value: _or_dash(value, times)),
    ("depth_trigger", "triggers", lambda value: _or_dash(value, shown)),
    ("deadline_trigger", "", lambda value: _or_dash(value, shown)),
    ("depth_p95_ns", "tight p95", lambda value: _or_dash(value, short_duration)),
    ("deadline_p95_ns", "", lambda value: _or_dash(value, short_duration)),
    ("depth_worst_ns", "tight worst", lambda value: _or_dash(value, short_duration)),
    ("deadline_worst_ns", "", lambda value: _or_dash(value, short_duration)),
)

EXPERIMENT = Experiment(
    "run_order", "what the run order costs: by depth against by deadline", plan, "run_order",
    ("none",), "Not in the papers.",
)  # fmt: skip
