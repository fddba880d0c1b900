# SPDX-License-Identifier: BSD-3-Clause
"""beside.py - a measured run and a simulated run of the same pipeline, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_duration, short_rate, three_digits
from ..control.python import NO_CONTROLLER
from ..lang.canonical import Document
from ..show.rates import FlowRow, ModuleRow, Rates, Snapshot, compute_rates
from ..sim.cases import Case, run_cases
from ..sim.prepare import prepare
from ..sim.result import Result
from .start import RunOptions

Number = float | None
# The virtual time of a steady pipeline; a scenario is simulated in full length.
_MAX_NS = 2_000_000_000
_PERIOD_NS = 10_000_000


@dataclass(frozen=True)
class Pair:
    """One quantity, measured and simulated."""

    subject: str
    quantity: str
    measured: Number
    simulated: Number
    unit: Callable[[Number], str]

    @property
    def difference(self) -> Number:
        """Simulated over measured, minus 1."""
        if self.measured is None or self.simulated is None or self.measured == 0:
            return None
        return self.simulated / self.measured - 1

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "quantity": self.quantity,
            "measured": self.measured,
            "simulated": self.simulated,
            "difference": self.difference,
        }


def pairs(first: Snapshot, last: Snapshot, result: Result) -> list[Pair]:
    """Rates, mean batches of modules and delays of flows, of a measured and a simulated run."""
    real, model = compute_rates(first, last), compute_rates(result.first, result.last)
    found = [
        Pair("all", "rate in", real.in_pps, model.in_pps, short_rate),
        Pair("all", "rate out", real.out_pps, model.out_pps, short_rate),
        Pair("all", "busiest core", _busiest(real), _busiest(model), _percent),
    ]
    for mine, other in _matched(real.modules, model.modules):
        found.append(
            Pair(_label(mine), "batch", mine.batch_mean_pkts, other.batch_mean_pkts, _count)
        )
    for flow, twin in _matched(real.flows, model.flows):
        found.append(Pair(_label(flow), "rate", flow.rate_pps, twin.rate_pps, short_rate))
        for name, delay_ns in flow.percentiles_ns.items():
            found.append(
                Pair(_label(flow), name, delay_ns, twin.percentiles_ns[name], short_duration)
            )
    return found


def _busiest(rates: Rates) -> Number:
    return max((worker.get("busy_ratio") or 0.0 for worker in rates.workers), default=None)


Row = TypeVar("Row", ModuleRow, FlowRow)


def _matched(mine: Iterable[Row], others: Iterable[Row]) -> Iterable[tuple[Row, Row]]:
    by_name = {row.name: row for row in others}
    return [(row, by_name[row.name]) for row in mine if row.name in by_name]


def _label(row: ModuleRow | FlowRow) -> str:
    return f"{row.name} x{row.count}" if row.count > 1 else row.name


def _count(value: Number) -> str:
    return "-" if value is None else three_digits(value)


def _percent(value: Number) -> str:
    return "-" if value is None else f"{value:.0%}"


def render_pairs(found: Sequence[Pair], origin: str) -> RenderableType:
    """The pairs as a table; a positive difference means that the simulation shows more."""
    table = plain_table("<", "<", "measured", "simulated", "difference")
    before = ""
    for pair in found:
        if pair.measured is None and pair.simulated is None:
            continue
        share = pair.difference
        table.add_row(
            pair.subject if pair.subject != before else "",
            pair.quantity,
            pair.unit(pair.measured),
            pair.unit(pair.simulated),
            "-" if share is None else f"{share:+.1%}",
        )
        before = pair.subject
    return Group(Text("\nmeasured vs simulated", "bold"), table, Text(origin, "dim"))


@dataclass(frozen=True)
class Beside:
    """The simulated twin of a measured run."""

    result: Result
    origin: str


def simulate_beside(
    document: Document, options: RunOptions, measured_s: float, errors: Console
) -> Beside:
    """Simulates the pipeline with the settings and events of the run."""
    inputs = prepare(document, costs=options.simulate, sets=options.sets, scenario=options.scenario)
    for warning in inputs.warnings:
        errors.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
    measured_ns = round(measured_s * 1e9)
    length_ns = measured_ns if options.scenario is not None else min(measured_ns, _MAX_NS)
    case = Case(NO_CONTROLLER, 1, length_ns, _PERIOD_NS)
    (result,) = run_cases(inputs, [case], 1, errors)
    return Beside(result, inputs.origin)
