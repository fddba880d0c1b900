# SPDX-License-Identifier: BSD-3-Clause
"""runs.py - runs a pipeline under a controller or with fixed triggers, period by period."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fixed_triggers import FixedTriggers, Triggers, Value, rate

from batchplane.base.promise import DEFAULT_PERCENTILE, is_slo_broken
from batchplane.costs.law import law_from
from batchplane.native.loader import make_simulation

PERIOD_NS = 10_000_000
SETTLE_PERIODS, FIXED_SETTLE_PERIODS = 40, 4
LAST_PERIODS = 20
MAX_VIOLATED = 0.005  # of periods
NEXT_BEST = 6
# (time, factor on all costs of the pipeline), in order.
CostChanges = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Run:
    """Rate and lateness, once settled."""

    rate_pps: float
    busy: float  # share of the time
    violated: float  # share of the worst flow's periods
    settled: int  # the first period from which its rate stays within 2 % of that
    is_late_to_the_end: bool  # some flow broke its SLO in each of the last periods
    trigger_pkts: tuple[int, ...]  # by module, at the end

    @property
    def busy_ns_per_pkt(self) -> float:
        return self.busy * 1e9 / self.rate_pps


def run(
    spec: Mapping[str, Any],
    by: str | Mapping[str, Any],
    slo_ns: int,
    watched: Sequence[str],
    n: int,
    cost_changes: CostChanges = (),
    told_costs: Mapping[str, Any] | None = None,
) -> Run:
    """Settles, then counts n periods; `by` is a controller's name or a constant decision. Fixed
    triggers settle faster, but if costs change, everyone gets the same changes. With
    `told_costs` the controller has to estimate the true ones, and begins with these."""
    is_fixed = not isinstance(by, str)
    settle_periods = FIXED_SETTLE_PERIODS if is_fixed and not cost_changes else SETTLE_PERIODS
    spec = {**spec, "flows": [dict(flow) for flow in spec["flows"]]}
    for flow in spec["flows"]:
        flow["delay_slo_ns"] = slo_ns if not watched or flow["name"] in watched else 0
    laws = {name: law_from(cost) for name, cost in spec["simulation"]["costs"].items()}
    sim = make_simulation(spec)
    sim.set_controller(by, {}) if isinstance(by, str) else sim.apply(dict(by))
    if told_costs is not None:
        sim.estimate_costs(told_costs)
    changes = list(cost_changes)
    late = [0] * len(spec["flows"])
    rates, busy, any_late = [], 0.0, []
    for number in range(settle_periods + n):
        end_ns = (number + 1) * PERIOD_NS
        while changes and changes[0][0] < end_ns:
            at_ns, factor = changes.pop(0)
            sim.run_until(at_ns)
            sim.edit({"costs": {name: law.scaled(factor).as_json() for name, law in laws.items()}})
        sim.run_until(end_ns)
        period = sim.step()[0] if isinstance(by, str) else sim.period()
        rates.append(sum(period["tasks"]["in_pkts"]) * 1e9 / period["period_ns"])
        if number < settle_periods:
            continue
        busy += sum(period["tasks"]["busy_ns"]) / period["period_ns"]
        here = [bool(is_broken) for is_broken in is_slo_broken(period["flows"], DEFAULT_PERCENTILE)]
        late = [before + is_late for before, is_late in zip(late, here[: len(late)], strict=True)]
        any_late.append(any(here))
    mean_pps = statistics.mean(rates[settle_periods:])
    off = [i for i, rate_pps in enumerate(rates) if abs(rate_pps - mean_pps) > 0.02 * mean_pps]
    return Run(
        float(mean_pps),
        float(busy) / n,
        max(late) / n,
        off[-1] + 1 if off else 0,
        all(any_late[-LAST_PERIODS:]),
        tuple(int(pkts) for pkts in period["modules"]["trigger_pkts"]),
    )


def best_kept(
    tried: Iterable[Triggers], run_of: Callable[[Triggers], Run]
) -> tuple[Triggers, Run | None]:
    """The first of these, in order of quality, that is hardly ever late over a whole run; else the
    least late one. The search itself only sees one short window."""
    least: tuple[Triggers, Run | None] = ((), None)
    for triggers in tried:
        found = run_of(triggers)
        if found.violated <= MAX_VIOLATED:
            return triggers, found
        if least[1] is None or found.violated < least[1].violated:
            least = triggers, found
    return least


def candidates(
    fixed: FixedTriggers,
    slo_ns: int,
    shares: Sequence[float],
    value: Value = rate,
    next_best: int = NEXT_BEST,
) -> list[Triggers]:
    """The best triggers for these shares of the SLO, as the p95 varies between periods, and some of
    the next best; the best first."""
    found = [fixed.best(share * slo_ns, value) for share in shares]
    points = {
        point.triggers: point
        for point in (*found, *fixed.all_kept(slo_ns, value)[:next_best])
        if point
    }  # fmt: skip
    return sorted(points, key=lambda triggers: value(points[triggers]), reverse=True)
