# SPDX-License-Identifier: BSD-3-Clause
"""budget.py - `egress_budget`: one delay budget for buffers and a scheduler, and the effect of
weights.

A tenant with an SLO sends 100 kpps of short packets through expensive modules, and over a link that
24 others flood.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration
from ...plots.base import COLOURS
from ..common.case import NO_LIMIT, Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCIPLINES = ("wf2q_plus", "qfq", "qfq_plus", "drr")
TRIGGERS = (0, 8, 32)
WEIGHTS = (5, 8, 16, 32, 64)
CONTROLLERS = ("full", "optimal")
FIRST_PPS, OTHERS, FLOOD_PPS = 100_000, 24, 10_000
LINK_BPS, FAST_BPS = 10**9, 10**11
SLO_NS = 200_000
PERIOD_NS = 50_000_000
CALM_PERIODS, FLOOD_PERIODS = 20, 20
FIXED_PERIODS = 6
NO_CONTROLLER = "none"  # triggers do not change


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Fixed triggers during a flood; then controllers that the flood takes by surprise."""
    fixed = {(d, t): _fixed(d, t) for d in DISCIPLINES for t in TRIGGERS}
    alone = {t: _fixed("wf2q_plus", t, FAST_BPS) for t in TRIGGERS}
    weights = WEIGHTS[::2] if setup.is_quick else WEIGHTS
    steered = {(c, w): _steered(c, w, setup) for c in CONTROLLERS for w in weights}
    results = yield [*fixed.values(), *alone.values(), *steered.values()]
    longest_ns = {t: _longest_ns(results[case.key]["series"]) for t, case in alone.items()}
    rows = [
        _fixed_row(d, t, results[case.key]["series"], longest_ns[t])
        for (d, t), case in fixed.items()
    ]
    rows += [_steered_row(c, w, results[case.key], setup) for (c, w), case in steered.items()]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _case(key: str, controller: str, params: dict[str, Any], **more: Any) -> Case:
    return Case(
        key, "shared_link", controller, {"slo": f"{SLO_NS}ns", **params}, period_ns=PERIOD_NS,
        watched_flow="tenant_0", watched_module="work_0", **more,
    )  # fmt: skip


def _fixed(discipline: str, trigger: int, link_bps: int = LINK_BPS) -> Case:
    params = {
        "discipline": discipline, "trigger": trigger, "other_pps": FLOOD_PPS, "link_bps": link_bps,
    }  # fmt: skip
    return _case(
        f"{discipline}/trigger {trigger}/{link_bps}", NO_CONTROLLER, params,
        periods=FIXED_PERIODS, warmup_periods=1, sets=(f"work_0.age_limit={NO_LIMIT}",),
    )  # fmt: skip


def _steered(controller: str, weight: int, setup: Setup) -> Case:
    calm = CALM_PERIODS // 2 if setup.is_quick else CALM_PERIODS
    flood = f"events:\n  - {{at: {calm * PERIOD_NS}ns, set: load.rate={OTHERS * FLOOD_PPS}}}\n"
    return _case(
        f"{controller}/weight {weight}", controller, {"weight": weight}, events=flood,
        periods=calm + FLOOD_PERIODS // (2 if setup.is_quick else 1),
    )  # fmt: skip


def _longest_ns(series: dict[str, list[Any]]) -> float:
    return float(max(series["delay_max_ns"][1:]))


def _fixed_row(discipline: str, trigger: int, series: dict[str, list[Any]], alone_ns: float) -> Row:
    """The longest delay minus that with an infinitely fast link, as both contain fill and work."""
    worst_ns = _longest_ns(series)
    bound_ns = float(max(series["egress_bound_ns"][1:]))
    return {
        "run": f"{discipline}, trigger {trigger}",
        "discipline": discipline,
        "controller": "",
        "weight": None,
        "batch_pkts": float(series["batch_mean_pkts"][-1]),
        "worst_ns": worst_ns,
        "bound_ns": bound_ns,
        "part_of_bound": (worst_ns - alone_ns) / bound_ns,
        "violated": None,
        "busy_ratio": None,
    }


def _steered_row(controller: str, weight: int, result: dict[str, Any], setup: Setup) -> Row:
    series = result["series"]
    calm = CALM_PERIODS // 2 if setup.is_quick else CALM_PERIODS
    late = series["is_violated"][calm:]
    return {
        "run": f"{controller}, weight {weight}",
        "discipline": "qfq",
        "controller": controller,
        "weight": weight,
        "batch_pkts": float(series["batch_mean_pkts"][calm - 1]),
        "worst_ns": float(max(series["delay_max_ns"][calm:])),
        "bound_ns": float(max(series["egress_bound_ns"][calm:])),
        "part_of_bound": None,
        "violated": sum(late) / len(late),
        "busy_ratio": float(series["busy_ratio"][calm - 1]),
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """Fill and egress delays do not overlap, SLOs hold in a flood, and weight allows larger
    batches."""
    fixed = [row for row in rows if row["part_of_bound"] is not None]
    parts = {str(row["run"]): float(row["part_of_bound"]) for row in fixed}
    optimal = [row for row in rows if row.get("controller") == "optimal"]
    late = {str(row["run"]): float(row["violated"]) for row in optimal}
    least, most = optimal[0], optimal[-1]
    return [
        at_most(
            "what the link adds to the longest delay with triggers of 0 to 32 is within its bound",
            parts, 1.0, percent,
        ),
        at_most("optimal: periods late after others began to flood", late, 0.001, percent),
        at_least(
            f"a weight of {most['weight']} for {least['weight']} buys larger batches",
            {"optimal": float(most["batch_pkts"]) / float(least["batch_pkts"])}, 1.2, times,
        ),
        at_least(
            "and with them time of the core (busy share at the lesser weight over the larger's)",
            {"optimal": float(least["busy_ratio"]) / float(most["busy_ratio"])}, 1.1, times,
        ),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Triggers, bounds and worst delays by weight."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(
        f"100 kpps under an SLO of {short_duration(SLO_NS)} beside a flood ({setup.label})",
        fontsize=10,
    )
    for i, controller in enumerate(CONTROLLERS):
        mine = [row for row in rows if row.get("controller") == controller]
        weights = [row["weight"] for row in mine]
        worst = [row["worst_ns"] / 1e3 for row in mine]
        axis.plot(weights, worst, "o-", color=COLOURS[i], label=f"{controller}: longest delay")
        if controller == "optimal":
            bounds = [row["bound_ns"] / 1e3 for row in mine]
            axis.plot(weights, bounds, "s--", color=COLOURS[2], label="bound of the link's wait")
    axis.axhline(SLO_NS / 1e3, color="#888888", linewidth=0.8, linestyle=":", label="SLO")
    axis.set_xlabel("weight (24 others have 1 each)")
    axis.set_ylabel("us")
    axis.set_xscale("log", base=2)
    axis.grid(True, color="#dddddd", linewidth=0.6)
    axis.legend(fontsize=8)
    return figure


def _percent(value: float | None) -> str:
    return "-" if value is None else percent(value)


COLUMNS = (
    ("run", "<run", shown),
    ("batch_pkts", "packets a batch", lambda value: f"{value:.1f}"),
    ("worst_ns", "longest delay", short_duration),
    ("bound_ns", "bound of the link's wait", short_duration),
    ("part_of_bound", "what it adds, of the bound", _percent),
    ("violated", "late periods", _percent),
    ("busy_ratio", "busy before the flood", _percent),
)

EXPERIMENT = Experiment(
    "egress_budget",
    "one budget over buffers and a packet scheduler: bounds, floods, and what weights buy",
    plan, "egress_budget", CONTROLLERS,
    "4 us a batch and 10 ns a packet, 1 Gbit/s, 24 others with packets of 1500 bytes.",
)  # fmt: skip
