# SPDX-License-Identifier: BSD-3-Clause
"""aqm.py - `egress_aqm`: a ping next to four downloads on a 100 Mbit/s line, by queue type."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...egress.models import line_model
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import MEASURED, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import DIFFERENT, Verdict, at_least, at_most, in_range, times
from . import line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VIRTUAL, _MEASURED = "virtual time", "measured"
_MODELS = {"tail drop, 1 MB": "fifo", "codel": "codel", "fq_codel": "fq_codel"}
_POLICED = [name for name in line.LINES if name.startswith("policed")]
# If other programs took more than this share of the gateway's core, the run is not valid.
_MOST_WAITED = 0.02
_ATTEMPTS = 4


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """A model of senders for the queues, and real TCP through all lines if that is possible."""
    yield []
    rows: list[Row] = []
    for name, queue in _MODELS.items():
        model = line_model(queue)
        rows.append(_row(_VIRTUAL, name, model.ping_p50_ms, model.ping_p95_ms, model.goodput, 0))
    reason = line.missing()
    if reason is None:
        rows += measured(*((4, 5) if setup.is_quick else (6, 20)))
    return Outcome(rows, COLUMNS, claims(rows, reason), lambda: draw(rows, setup))


def measured(warm_up_s: float, run_s: float) -> list[Row]:
    """For each line the least disturbed run; all lines take turns."""
    best: dict[str, line.Passed] = {}
    for _ in range(_ATTEMPTS):
        for name in line.LINES:
            if name in best and best[name].waited <= _MOST_WAITED:
                continue
            passed = line.measure(name, warm_up_s, run_s)
            if name not in best or passed.waited < best[name].waited:
                best[name] = passed
    return [
        _row(_MEASURED, name, p.ping_p50_ms, p.ping_p95_ms, p.goodput, p.waited)
        for name, p in best.items()
    ]


def _row(way: str, name: str, p50_ms: float, p95_ms: float, goodput: float, waited: float) -> Row:
    return {
        "way": way,
        "line": name,
        "ping_p50_ms": p50_ms,
        "ping_p95_ms": p95_ms,
        "goodput": goodput,
        "waited": waited,
    }


def claims(rows: list[Row], reason: str | None) -> list[Verdict]:
    """The claims about queues; `reason`: why nothing was measured, or None."""
    p95 = {(row["way"], row["line"]): float(row["ping_p95_ms"]) for row in rows}
    goodput = {(row["way"], row["line"]): float(row["goodput"]) for row in rows}
    ms = lambda value: f"{value:.1f} ms"  # noqa: E731
    part = lambda value: f"{value:.3f}"  # noqa: E731

    def of(values: dict[tuple[str, str], float], name: str) -> dict[str, float]:
        return {way: value for (way, line_name), value in values.items() if line_name == name}

    full = {
        f"{name}, {way}": value
        for name in ("codel", "fq_codel")
        for way, value in of(goodput, name).items()
    }
    above = "ping above the round trip (p95)"
    found = [
        in_range(f"{above} behind tail drop of 1 MB: about 80 ms",
                 of(p95, "tail drop, 1 MB"), 60, 100, ms, is_more_better=False),
        at_most(f"{above} behind codel", of(p95, "codel"), 15, ms),
        at_most(f"{above} behind fq_codel", of(p95, "fq_codel"), 2, ms),
        at_least("the line stays full with either", full, 0.95, part),
    ]  # fmt: skip
    if reason is None:
        found += _policer_claims(p95, goodput)
    return [verdict.because(_disturbed(rows)) for verdict in found] + _not_measured(reason)


def _policer_claims(
    p95: dict[tuple[str, str], float], goodput: dict[tuple[str, str], float]
) -> list[Verdict]:
    """AMBR shaped compared with policed."""
    shaped = (_MEASURED, "fq_codel")
    more = {name: goodput[shaped] / goodput[_MEASURED, name] for name in _POLICED}
    later = {name: p95[shaped] - p95[_MEASURED, name] for name in _POLICED}
    return [
        at_least("a rate shaped with fq_codel carries what a policed one does", more, 1, times),
        at_most("and its ping (p95) is at most 2 ms behind", later, 2, lambda v: f"{v:.1f} ms"),
    ]


def _disturbed(rows: list[Row]) -> str:
    waited = max(float(row["waited"]) for row in rows)
    if waited <= _MOST_WAITED:
        return ""
    return f"Other programs had the gateway's core for up to {waited:.0%} of the time."


def _not_measured(reason: str | None) -> list[Verdict]:
    if reason is None:
        return []
    claim = "real TCP between hosts in namespaces, shaped and policed"
    return [Verdict(claim, "measured", "-", DIFFERENT, f"Not measured here: {reason}.")]


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Ping and goodput, one bar per line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    figure.suptitle(f"four downloads, 100 Mbit/s, 20 ms ({setup.origin})", fontsize=10)
    names = list(dict.fromkeys(row["line"] for row in rows))
    left, right = figure.subplots(1, 2, sharey=True)
    for axis, key, label in (
        (left, "ping_p95_ms", "ping above the round trip, p95, ms"),
        (right, "goodput", "part of the line that is used"),
    ):
        for k, way in enumerate((_MEASURED, _VIRTUAL)):
            mine = [row for row in rows if row["way"] == way]
            places = [names.index(row["line"]) + 0.4 * k - 0.2 for row in mine]
            axis.barh(places, [row[key] for row in mine], 0.4, color=COLOURS[k], label=way)
        axis.set_xlabel(label)
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.legend(fontsize=8)
    return figure


def _ms(value: float) -> str:
    return f"{value:.1f}"


COLUMNS = (
    ("way", "how", shown),
    ("line", "line", shown),
    ("ping_p50_ms", "ping above RTT, p50 ms", _ms),
    ("ping_p95_ms", "p95", _ms),
    ("goodput", "goodput", lambda v: f"{v:.3f}"),
    ("waited", "core lost", lambda v: f"{v:.1%}"),
)

EXPERIMENT = Experiment(
    "egress_aqm", "Queues that keep delays short, and a rate shaped or policed", plan, "egress_aqm",
    (), "20 ms are made by the calendar discipline in the same gateway; goodput is what reaches "
    "the subscriber, with all headers.",
    runs=(MEASURED,),
)  # fmt: skip
