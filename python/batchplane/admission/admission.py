# SPDX-License-Identifier: BSD-3-Clause
"""admission.py - whether packet schedulers can meet the flows' SLOs, before anything runs.

To find the scheduler's flow that a declared flow belongs to, a packet of each traffic flow is sent
through the real modules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, RunFailed
from ..base.units import duration_text, short_bits, short_duration
from ..changes.traffic_state import GeneratorState, generator_states
from ..costs.costs import PRIOR, load_costs, resolve
from ..lang.canonical import Document
from ..native.loader import load_native
from ..routes.resolve import GroupedProbe, probe_grouped

# Disciplines that share the link by weight and have a delay bound.
DISCIPLINES = ("drr", "wf2q_plus", "qfq", "qfq_plus")
# Of the delay budget that the graph leaves; the other half is for batches.
_SHARE_OF_LINK = 0.5


@dataclass
class Admitted:
    """A declared flow with an SLO, and one of the schedulers on its path."""

    flow: str
    slo_ns: int
    scheduler: str
    number: int  # the scheduler's flow; of several, the one with the longest bound
    graph_ns: float  # for one packet through all modules on its path
    bound_ns: float | None  # of the scheduler, without the rounds of its worker
    share_bps: float
    sends_bps: float  # all traffic to that flow of the scheduler
    other_links_ns: float = 0.0  # bounds of other schedulers on its path
    is_kept: bool = True
    told: str = ""
    weights: dict[int, int] = field(default_factory=dict)

    def line(self) -> str:
        bound = "no bound" if self.bound_ns is None else f"at most {short_duration(self.bound_ns)}"
        others = ""
        if self.other_links_ns:
            others = f" + other links at most {short_duration(self.other_links_ns)}"
        return (
            f"{self.flow}: SLO {duration_text(self.slo_ns)} = graph {short_duration(self.graph_ns)}"
            f" + {self.scheduler} {bound}{others} + the rest; {self.told}"
        )

    @property
    def left_ns(self) -> float:
        """What the graph and other links leave of the SLO."""
        return self.slo_ns - self.graph_ns - self.other_links_ns

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def admission(
    document: Document, program: Path, answer: dict[str, Any] | None = None
) -> list[Admitted]:
    """A row for each flow with an SLO that passes a scheduler; empty if that cannot be
    determined. `answer`: see probe_grouped()."""
    if not _slos(document):
        return []
    try:
        rows, probe = admitted(document, program, answer)
    except (BadInput, RunFailed):
        return []
    for scheduler in probe.schedulers:
        _judge([row for row in rows if row.scheduler == scheduler], probe.schedulers[scheduler])
    return rows


def admitted(
    document: Document, program: Path, answer: dict[str, Any] | None = None
) -> tuple[list[Admitted], GroupedProbe]:
    """The rows without a verdict, and the schedulers that were found.

    Raises BadInput and RunFailed.
    """
    probe = probe_grouped(document, program, answer)
    numbers, sends = _seen(probe, document)
    costs = _graph_ns(document)
    bounds = {
        name: {row["flow"]: row for row in told.get("bounds", ())}
        for name, told in probe.schedulers.items()
    }
    rows = [
        _row(name, slo_ns, scheduler, numbers[name, scheduler], sends, probe, costs, bounds)
        for name, slo_ns in _slos(document).items()
        for scheduler in probe.schedulers
        if numbers[name, scheduler]
    ]
    all_ns: dict[str, float] = defaultdict(float)
    for row in rows:
        all_ns[row.flow] += row.bound_ns or 0.0
    for row in rows:
        row.other_links_ns = all_ns[row.flow] - (row.bound_ns or 0.0)
    return rows, probe


def weights_that_do(rows: list[Admitted], numbers: dict[str, Any]) -> dict[int, int]:
    """The least weights of a scheduler's flows that meet all SLOs; empty if there are none."""
    if str(numbers["discipline"]) not in DISCIPLINES:
        return {}
    needs = [(row.number, row.sends_bps, _SHARE_OF_LINK * row.left_ns) for row in rows]
    return dict(load_native().egress_weights(numbers, needs))


def _slos(document: Document) -> dict[str, int]:
    return {
        str(flow["name"]): int(flow["delay_slo_ns"])
        for flow in document.pipeline.get("flows", [])
        if flow.get("delay_slo_ns")
    }


def _seen(
    probe: GroupedProbe, document: Document
) -> tuple[dict[tuple[str, str], set[int]], dict[tuple[str, int], float]]:
    """The scheduler flows that each declared flow belongs to, and the bit rate sent to each."""
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    sends: dict[tuple[str, int], float] = defaultdict(float)
    states = generator_states(document.pipeline)
    for source, routes in probe.routes.items():
        rates_bps = _rates_bps(states[source]) if source in states else []
        for route in routes:
            for scheduler, of_flows in route["scheduled"].items():
                for way in route["ways"]:
                    if "flow" in way:
                        numbers[way["flow"], scheduler].update(of_flows)
                for k, number in zip(route["flows"], of_flows, strict=True):
                    if k < len(rates_bps):
                        sends[scheduler, number] += rates_bps[k]
    return numbers, sends


def _rates_bps(state: GeneratorState) -> list[float]:
    """The bit rate of each traffic flow, without frame checksums."""
    shared = sum(flow.weight for flow in state.shared)
    of_weight_pps = state.rate_pps / shared if shared else 0.0
    return [
        (flow.rate_pps or of_weight_pps * flow.weight) * 8 * max(1, flow.size_bytes - 4)
        for flow in state.flows
    ]


def _graph_ns(document: Document) -> dict[str, float]:
    """The cost of one packet in each module, from the built-in costs."""
    found = resolve(document.pipeline, load_costs(PRIOR), document.file).as_json()["modules"]
    return {
        name: float(cost["cost_per_batch_ns"]) + float(cost["cost_per_pkt_ns"])
        for name, cost in found.items()
    }


def _row(
    name: str,
    slo_ns: int,
    scheduler: str,
    numbers: Iterable[int],
    sends: dict[tuple[str, int], float],
    probe: GroupedProbe,
    costs: dict[str, float],
    bounds: dict[str, dict[int, dict[str, Any]]],
) -> Admitted:
    known = {number: bounds[scheduler][number] for number in numbers}
    longest = max(known, key=lambda number: known[number]["bound_ns"] or float("inf"))
    path = next(
        way["path"]
        for routes in probe.routes.values()
        for route in routes
        for way in route["ways"]
        if way.get("flow") == name
    )
    bound = known[longest]
    return Admitted(
        name, slo_ns, scheduler, longest, sum(costs.get(module, 0.0) for module in path),
        bound["bound_ns"], bound["share_bps"], sends[scheduler, longest],
        told=bound["why_not"],
    )  # fmt: skip


def _judge(rows: list[Admitted], numbers: dict[str, Any]) -> None:
    """Marks the SLOs that hold, and where one does not, adds the weights that would do."""
    bounded = [row for row in rows if row.bound_ns is not None]
    for row in bounded:
        left_ns = row.left_ns - (row.bound_ns or 0.0)
        row.is_kept = row.share_bps >= row.sends_bps and left_ns > 0
        if row.share_bps < row.sends_bps:
            row.told = (
                f"it sends {short_bits(row.sends_bps)}, more than its share of the link, "
                f"{short_bits(row.share_bps)}"
            )
        elif left_ns <= 0:
            row.told = f"the link alone may take {short_duration(row.bound_ns)}"
        else:
            row.told = f"{short_duration(left_ns)} are left for rounds and batches"
    if all(row.is_kept for row in bounded):
        return
    weights = weights_that_do(bounded, numbers)
    for row in bounded:
        row.weights = weights
    listed = ", ".join(f"flow {number}: {weight}" for number, weight in sorted(weights.items()))
    hint = f"these weights would do: {listed}" if listed else "no weights would do"
    if numbers["discipline"] == "tree":
        hint = "raise its min_rate_bps, or lower catch_up_us or others' minimum rates"
    for row in bounded:
        if not row.is_kept:
            row.told += f"; {hint}"
