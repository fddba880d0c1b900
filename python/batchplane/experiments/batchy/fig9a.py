# SPDX-License-Identifier: BSD-3-Clause
"""fig9a.py - the SLO changes under full load: 150, 100, 200, 300, 125, 60 us (figure 9a)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..common.case import Case
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup
from ..common.verdict import (
    Verdict,
    at_least,
    at_most,
    in_range,
    late_there,
    no_more_under,
    percent,
    times,
)
from .four_by_eight import (
    COLUMNS,
    draw_series,
    make_case,
    mean,
    settled,
    step_of,
    step_rows,
    time_line,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "max", "full", "optimal")
SLOS_US = (150, 100, 200, 300, 125, 60)
_ROOM_US = 200  # from this SLO on there is room for larger batches


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """20 periods of each SLO."""
    each = 10 if setup.is_quick else 20
    # A daemon is queried once per period, which would disturb shorter periods.
    period_ns = 10_000_000 if setup.is_quick and not setup.is_measured else 100_000_000
    step_ns = each * period_ns
    words = [f"flow_*.slo={slo}us" for slo in SLOS_US]
    results = yield [
        make_case(
            setup, controller, time_line(words, step_ns), each * len(SLOS_US),
            period_ns=period_ns, params={"saturate": True}, sets=(words[0],),
        )
        for controller in CONTROLLERS
    ]  # fmt: skip
    series = {name: results[name]["series"] for name in CONTROLLERS}
    rows = step_rows(
        series, [f"{slo} us" for slo in SLOS_US], step_ns, period_ns, [s * 1000 for s in SLOS_US]
    )
    verdicts = claims(series, rows, step_ns, period_ns)
    return Outcome(rows, COLUMNS, verdicts, lambda: draw(series, setup), series)


def recovery_periods(series: dict[str, list[Any]], step: int, step_ns: int) -> int:
    """The number of periods in this step until no flow is late any more."""
    inside = step_of(series, step, step_ns, range(len(series["time_ns"])))
    late = [n for n, i in enumerate(inside, 1) if series["is_violated"][i]]
    # Late periods after a good one are violations of their own, not recovery.
    count = 0
    while count < len(late) and late[count] == count + 1:
        count += 1
    return count


def claims(
    series: dict[str, dict[str, list[Any]]], rows: list[Row], step_ns: int, period_ns: int
) -> list[Verdict]:
    """The paper's claims about figure 9a."""
    rates = {(row["controller"], row["step"]): row["rate_pps"] for row in rows}
    wide = [f"{slo} us" for slo in SLOS_US if slo >= _ROOM_US]
    labels = [f"{slo} us" for slo in SLOS_US]
    falls = [i for i in range(1, len(SLOS_US)) if SLOS_US[i] < SLOS_US[i - 1]]

    def recovered(name: str) -> dict[str, float]:
        return {f"{SLOS_US[i]} us": recovery_periods(series[name], i, step_ns) for i in falls}

    def settled_violated(name: str) -> dict[str, float]:
        chosen = settled(series[name], step_ns, len(SLOS_US), period_ns)
        return {name: mean([series[name]["is_violated"][i] for i in chosen])}

    def late(name: str) -> dict[str, float]:
        """The share of violated periods of each step, those after its begin included."""
        each = int(step_ns / period_ns)
        marks = series[name]["is_violated"]
        return {label: mean(marks[i * each : (i + 1) * each]) for i, label in enumerate(labels)}

    def ratio(of: str, to: str, steps: list[str]) -> dict[str, float]:
        return {step: rates[of, step] / rates[to, step] for step in steps if rates[to, step]}

    def count(value: float) -> str:
        return f"{value:.0f} periods"

    return [
        at_most(
            "full recovers from a lower SLO at once (2 periods)", recovered("full"), 2, count
        ),
        at_most(
            "full tracks the SLO: settled periods violated at most 9 %",
            settled_violated("full"), 0.09, percent,
        ),
        in_range(
            "where there is room full carries 2 to 3 times null's rate",
            ratio("full", "null", wide), 2.0, 3.0, times,
        ).because(
            no_more_under(
                "max", ratio("full", "null", wide), ratio("max", "null", wide), 2.0, times
            )
        ),
        at_least("and reaches max's rate (0.95)", ratio("full", "max", wide), 0.95, times),
        at_most("ours: optimal recovers within 2 periods", recovered("optimal"), 2, count),
        at_most(
            "ours: optimal violates at most 0.1 % of settled periods",
            settled_violated("optimal"), 0.001, percent,
        ),
        at_least(
            "ours: optimal carries full's rate at every SLO (0.98)",
            ratio("optimal", "full", labels), 0.98, times,
        ).because(
            late_there("full", ratio("optimal", "full", labels), late("full"), 0.98, 0.001)
        ),
        at_least(
            "ours: optimal carries null's rate at every SLO (0.98)",
            ratio("optimal", "null", labels), 0.98, times,
        ),
    ]  # fmt: skip


def draw(series: dict[str, dict[str, list[Any]]], setup: Setup) -> Figure:
    """Figure 9a."""
    return draw_series(
        series,
        f"gateway 4 x 8 at full load, SLO changes ({setup.origin})",
        "paper: full follows the SLO, down at once, up with care; 2-3 x null's rate",
        False,
        "largest",
    )


EXPERIMENT = Experiment(
    "fig9a", "the SLO changes, 60 to 300 us (figure 9a)", plan, "fig9a", CONTROLLERS,
    "Periods of 100 ms (quick: 10 a step, simulated ones of 10 ms) instead of 2 s.", BOTH,
)  # fmt: skip
