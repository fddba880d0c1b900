# SPDX-License-Identifier: BSD-3-Clause
"""stranding.py - events between control periods: a rate step of 100 x down, and a flow that stops.

Without age limits, as in the papers, packets wait in a buffer until it is full.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration
from ..batchy.four_by_eight import draw_series, make_case
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, times, times_exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "max", "full", "full+age", "optimal")
SLO_NS = 1_000_000
_EACH = 20  # periods of each part
_AGED = ("full+age", "optimal")


def events(period_ns: int) -> str:
    """2 Mpps, which null can carry; a hundredth of it; 2 Mpps again; then flow 0 stops."""
    part_ns = _EACH * period_ns
    # Offset by a tenth of a period, so that no event coincides with a control step.
    off_ns = period_ns // 10
    return (
        "events:\n"
        f"  - {{at: {part_ns + off_ns}ns, set: load.rate=20k}}\n"
        f"  - {{at: {2 * part_ns + off_ns}ns, set: load.rate=2M}}\n"
        f"  - {{at: {3 * part_ns + off_ns}ns, stop: load/branch_0_0}}\n"
    )


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """All controllers with the same time line."""
    period_ns = 10_000_000 if setup.is_quick else 100_000_000
    results = yield [
        make_case(
            setup, controller, events(period_ns), 4 * _EACH, period_ns=period_ns,
            sets=("load.rate=2M", f"flow_*.slo={SLO_NS}ns"),
        )
        for controller in CONTROLLERS
    ]  # fmt: skip
    series = {name: results[name]["series"] for name in CONTROLLERS}
    rows = [_row(name, results[name]) for name in CONTROLLERS]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(series, setup), series)


def _row(controller: str, result: dict[str, Any]) -> Row:
    worst = result["series"]["worst_delay_ns"]
    # Packets that still wait have no delay yet; they are in the last column.
    return {
        "controller": controller,
        "steady_worst_ns": max(worst[_EACH // 2 : _EACH]),
        "step_worst_ns": max(worst[_EACH : 2 * _EACH]),
        "step_worst_ratio": max(worst[_EACH : 2 * _EACH]) / SLO_NS,
        "stranded_pkts": result["watched_held_pkts"],
    }


def claims(rows: list[Row]) -> list[Verdict]:
    """The benefit of age limits, and the damage without them."""
    ratio = {row["controller"]: row["step_worst_ratio"] for row in rows}
    stranded = {row["controller"]: float(row["stranded_pkts"]) for row in rows}

    def packets(value: float) -> str:
        return f"{value:.0f} packets"

    return [
        at_least(
            "without an age limit a step of 100 x down passes the SLO (max)",
            {"max": ratio["max"]}, 1.0, times,
        ),
        at_least(
            "and packets strand when their flow stops (max)",
            {"max": stranded["max"]}, 1.0, packets,
        ),
        at_most(
            "ours: with age limits the SLO holds through the step",
            {name: ratio[name] for name in _AGED}, 1.0, times_exactly,
        ),
        at_most(
            "ours: with age limits no packet strands",
            {name: stranded[name] for name in _AGED}, 0.0, packets,
        ),
    ]  # fmt: skip


def draw(series: dict[str, dict[str, list[Any]]], setup: Setup) -> Figure:
    """Panels like those of figure 9."""
    return draw_series(
        series,
        f"gateway 4 x 8, a step of 100 x down and a flow that stops ({setup.origin})",
        "dotted: SLO of 1 ms; papers: no age limit",
        True,
    )


COLUMNS = (
    ("controller", "<controller", shown),
    ("steady_worst_ns", "worst delay before", short_duration),
    ("step_worst_ns", "worst delay in the step", short_duration),
    ("step_worst_ratio", "of the SLO", times),
    ("stranded_pkts", "stranded packets", shown),
)

EXPERIMENT = Experiment(
    "stranding", "between control periods: age limits against none", plan, "stranding",
    CONTROLLERS, "Not in the papers.",
)  # fmt: skip
