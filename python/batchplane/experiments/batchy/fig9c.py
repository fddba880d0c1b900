# SPDX-License-Identifier: BSD-3-Clause
"""fig9c.py - a mobile gateway: the load of one bearer changes next to bulk traffic (figure 9c).

Bearer 0 of one user carries 10, 20, 5, 50, 15, 1 kpps in each direction with an SLO of 1 ms; the
other bearer of all 16 users carries 2 Mpps in total, without an SLO.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..common.case import NO_LIMIT, Case
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup
from ..common.verdict import Verdict, at_least, at_most, percent, times, times_exactly
from .four_by_eight import (
    COLUMNS,
    TRANSIENT_PERIODS,
    draw_series,
    mean,
    settled,
    step_of,
    step_rows,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "max", "full", "full+age", "optimal")
LOADS_KPPS = (10, 20, 5, 50, 15, 1)
USERS, BEARERS = 16, 2
BULK_PPS = 2_000_000
SLO_NS = 1_000_000
MODULE, FLOW = "dl_work_0_0", "dl_0_0"


def words(kpps: int) -> list[str]:
    """Settings of the generator: its rate, and the share of each flow."""
    own = [kpps * 1000] + [0] * (USERS - 1)
    bulk = [BULK_PPS // (2 * USERS)] * USERS
    weights = [*own, *bulk, *own, *bulk]  # downlink of each bearer, then uplink
    return [f"load.rate={sum(weights)}", f"load.weights={','.join(map(str, weights))}"]


def events(step_ns: int) -> str:
    """The loads after the first one, as a scenario."""
    lines = ["events:"]
    for i, kpps in enumerate(LOADS_KPPS[1:], 1):
        lines += [f"  - {{at: {i * step_ns}ns, set: '{word}'}}" for word in words(kpps)]
    return "\n".join(lines) + "\n"


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """20 periods of each load; at 1 kpps a short period would have too few packets."""
    each = 10 if setup.is_quick else 20
    period_ns = 100_000_000 if setup.is_quick else 1_000_000_000
    step_ns = each * period_ns
    results = yield [
        Case(
            controller,
            "mgw",
            controller,
            {
                "bearers": BEARERS, "users": USERS, "bearer_cycles": 5000,
                "bearer_pkt_cycles": 100, "slo_ns": SLO_NS, "age_limit": NO_LIMIT,
            },
            sets=("idle=hold", *words(LOADS_KPPS[0])),
            events=events(step_ns),
            costs=setup.costs,
            period_ns=period_ns,
            periods=each * len(LOADS_KPPS),
            watched_module=MODULE,
            watched_flow=FLOW,
        )
        for controller in CONTROLLERS
    ]  # fmt: skip
    series = {name: results[name]["series"] for name in CONTROLLERS}
    busy = {name: float(results[name]["busy_ratio"]) for name in CONTROLLERS}
    labels = [f"{kpps} kpps" for kpps in LOADS_KPPS]
    rows = step_rows(series, labels, step_ns, period_ns, [SLO_NS] * len(labels))
    verdicts = claims(series, rows, busy, step_ns, period_ns)
    return Outcome(rows, COLUMNS, verdicts, lambda: draw(series, setup), series)


def claims(
    series: dict[str, dict[str, list[Any]]],
    rows: list[Row],
    busy: dict[str, float],
    step_ns: int,
    period_ns: int,
) -> list[Verdict]:
    """As for figure 9b, and a gain over null; as the load is fixed, a gain means less busy time."""

    def values(controller: str, key: str) -> dict[str, float]:
        return {row["step"]: row[key] for row in rows if row["controller"] == controller}

    def late_share(first: int) -> dict[str, float]:
        """The share of late periods in each step, from period `first` of the whole run on."""
        columns = series["optimal"]
        found = {}
        for step, kpps in enumerate(LOADS_KPPS):
            every = range(first, len(columns["time_ns"]))
            inside = step_of(columns, step, step_ns, every)
            found[f"{kpps} kpps"] = mean([float(columns["is_violated"][i]) for i in inside])
        return found

    worst = {step: ns / SLO_NS for step, ns in values("optimal", "worst_delay_ns").items()}
    first_step = f"{LOADS_KPPS[0]} kpps"
    later = {step: value for step, value in worst.items() if step != first_step}

    def rate(controller: str) -> float:
        chosen = settled(series[controller], step_ns, len(LOADS_KPPS), period_ns)
        return mean([series[controller]["out_pps"][i] for i in chosen])

    gain = {
        name: (rate(name) / busy[name]) / (rate("null") / busy["null"])
        for name in ("full", "optimal")
    }
    return [
        at_most(
            "full keeps 1 ms except in transients", values("full", "violated_ratio"), 0.0, percent
        ),
        at_least(
            "full does more with the same time than null (1.2 times)", {"full": gain["full"]}, 1.2,
            times,
        ),
        at_least(
            "ours: optimal does, too", {"optimal": gain["optimal"]}, 1.2, times
        ),
        at_most(
            "ours: optimal violates no period of the whole run, its start included",
            late_share(0), 0.0, percent,
        ),
        at_most(
            f"ours: nor from period {TRANSIENT_PERIODS + 1} on, transients of loads included",
            late_share(TRANSIENT_PERIODS), 0.0, percent,
        ),
        at_most(
            "ours: optimal lets no single packet pass the SLO in the whole run", worst, 1.0,
            times_exactly,
        ),
        at_most(
            "ours: nor after the first load", later, 1.0, times_exactly
        ),
    ]  # fmt: skip


def draw(series: dict[str, dict[str, list[Any]]], setup: Setup) -> Figure:
    """Figure 9c: trigger, delay and rate over time, delay on a logarithmic axis."""
    loads = ", ".join(f"{kpps}" for kpps in LOADS_KPPS)
    return draw_series(
        series,
        f"mobile gateway, {USERS} users: bearer 0 of one at {loads} kpps beside 2 Mpps "
        f"({setup.origin})",
        "paper: below the SLO of 1 ms except in transients",
        True,
        module=MODULE,
        flow=FLOW,
        is_rate_log=False,
    )


EXPERIMENT = Experiment(
    "fig9c", "a bearer's load changes, 1 to 50 kpps, beside bulk (figure 9c)", plan, "fig9c",
    CONTROLLERS,
    "Bearer 0 of one user, as the script has it (the text: of all); 1 s for the paper's 3 s.",
    BOTH, needs=("mgw",),
)  # fmt: skip
