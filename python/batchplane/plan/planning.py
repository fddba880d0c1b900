# SPDX-License-Identifier: BSD-3-Clause
"""planning.py - predicts what a pipeline will carry at given SLOs, before anything runs.

plans = Planner(inputs)                      # inputs as for a simulation
plans.plan(slo_ns={"flow_0": 100_000})       # one plan, as docs/planning.md describes it
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.promise import DEFAULT_PERCENTILE
from ..native.loader import NativePlanner, make_planner
from ..sim.prepare import Inputs
from .branches import Branch, branches_of
from .links import LINK, PlanRow, assumed_sizes, link_doubts, name_limits

OPTIMAL = "optimal"
BASELINES = ("null", "max")
# Multiples of the given SLOs for which further plans are made.
NEAR_FACTORS = (0.5, 0.8, 1.25, 2.0)
CURVE_FACTORS = tuple(2 ** (i / 3) for i in range(-7, 8))
_MAX_FACTOR = 1024.0
_SEARCH_STEPS = 7
_INHERENT = "inherent"
# If more batches than this leave by age, small changes move the rate a lot.
UNCERTAIN_AGED_SHARE = 0.5
_BETTER = 1.02  # a rate this much higher is worth reporting


@dataclass(frozen=True)
class Cores:
    """An estimate of the cores that an offered rate needs if each runs the whole pipeline."""

    offered_pps: float
    cores: int
    load: float  # of each core

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "offered_pps": self.offered_pps,
            "cores": self.cores,
            "load": self.load,
            "is_estimate": True,
        }


@dataclass
class Report:
    """Everything that `batchplane plan` reports."""

    name: str
    origin: str
    percentile: float
    slo_ns: dict[str, int]
    plan: PlanRow
    baselines: list[PlanRow]
    near: list[tuple[float, PlanRow]] = field(default_factory=list)  # by factor of the SLOs
    branches: list[tuple[Branch, PlanRow]] = field(default_factory=list)
    cores: Cores | None = None
    min_factor: float | None = None  # of the SLOs, if they cannot be met
    curve: list[tuple[float, PlanRow]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    assumed: dict[str, Any] = field(default_factory=dict)  # options that replace a pipeline

    @property
    def missed(self) -> list[PlanRow]:
        """Flows whose SLO no triggers can meet at full load."""
        return missed_flows(self.plan)

    def as_json(self) -> dict[str, Any]:

        def points(rows: Sequence[tuple[float, PlanRow]]) -> list[dict[str, Any]]:
            return [
                {
                    "slo_factor": factor,
                    "rate_pps": plan["rate_pps"],
                    "core_pps": plan["core_pps"],
                    "limited_by": plan["limited_by"],
                    "is_kept": not missed_flows(plan),
                }
                for factor, plan in rows
            ]

        return {
            "label": "planned",
            "pipeline": self.name,
            "costs": self.origin,
            "percentile": self.percentile,
            "assumed": self.assumed,
            **self.plan,
            "baselines": [
                {
                    "controller": plan["controller"],
                    "rate_pps": plan["rate_pps"],
                    "core_pps": plan["core_pps"],
                    "limited_by": plan["limited_by"],
                    "is_kept": keeps(plan, 1.0),
                }
                for plan in self.baselines
            ],
            "other_slos": points(self.near),
            "min_slo_factor": self.min_factor,
            "one_branch_less": [
                {**branch.as_json(), "rate_pps": plan["rate_pps"]} for branch, plan in self.branches
            ],
            "cores": None if self.cores is None else self.cores.as_json(),
            "curve": points(self.curve),
            "warnings": self.warnings,
        }


def missed_flows(plan: PlanRow) -> list[PlanRow]:
    """Flows of a plan whose SLO is not met at full load."""
    return [
        flow
        for flow in plan["flows"]
        if flow["slo_ns"]
        and (flow.get("state") == _INHERENT or (flow["share"] > 0 and flow["is_broken"]))
    ]


def keeps(plan: PlanRow, factor: float) -> bool:
    """Whether a plan that ignores SLOs meets them when they are `factor` times as long."""
    return not any(
        # For other factors only the percentile is known.
        (flow["is_broken"] if factor == 1 else flow["measured_ns"] > factor * flow["slo_ns"])
        for flow in plan["flows"]
        if flow["slo_ns"] and flow["share"] > 0
    )


class Planner:
    """Makes plans of one pipeline with one traffic and one set of costs."""

    def __init__(self, inputs: Inputs, settings: Mapping[str, Any] | None = None):
        self.inputs = inputs
        self._settings = dict(settings or {})
        self._native: NativePlanner = make_planner(inputs.spec)

    @property
    def percentile(self) -> float:
        """The percentile of delays that SLOs refer to."""
        return float(self._settings.get("percentile", DEFAULT_PERCENTILE))

    def plan(
        self,
        slo_ns: Mapping[str, int] | None = None,
        controller: str = OPTIMAL,
        less: Branch | None = None,
    ) -> PlanRow:
        """One plan; `slo_ns` overrides the pipeline's SLOs."""
        request: dict[str, Any] = {"controller": controller, "settings": self._settings}
        if slo_ns is not None:
            request["slo_ns"] = dict(slo_ns)
        if less is not None:
            request["merged"] = {"module": less.splitter, "gate": less.gate}
        plan = self._native.plan(request)
        name_limits(plan, self.inputs.spec)
        return plan

    def scaled(self, slo_ns: Mapping[str, int], factor: float) -> PlanRow:
        """The plan with all SLOs multiplied by `factor`."""
        return self.plan({flow: max(1, round(ns * factor)) for flow, ns in slo_ns.items() if ns})

    def report(
        self, slo_ns: dict[str, int], offered_pps: float | None = None, has_curve: bool = False
    ) -> Report:
        """The plan, plans with other SLOs or branches, and the baselines."""
        plan = self.plan(slo_ns)
        report = Report(
            name=str(self.inputs.document.pipeline.get("name", "pipeline")),
            origin=self.inputs.origin,
            percentile=self.percentile,
            slo_ns=slo_ns,
            plan=plan,
            baselines=[self.plan(slo_ns, name) for name in BASELINES],
            near=[(factor, self.scaled(slo_ns, factor)) for factor in NEAR_FACTORS],
            branches=[
                (branch, self.plan(slo_ns, less=branch))
                for branch in branches_of(self.inputs.spec, plan)
            ],
            warnings=list(self.inputs.warnings),
        )
        if has_curve:
            known = dict(report.near) | {1.0: plan}
            report.curve = [
                (factor, known.get(factor) or self.scaled(slo_ns, factor))
                for factor in sorted({*CURVE_FACTORS, *known})
            ]
        if report.missed:
            report.min_factor = self._min_factor(slo_ns)
        if offered_pps is not None and not report.missed:
            report.cores = cores_for(offered_pps, plan["core_pps"], len(plan["workers"]))
        report.warnings += assumed_sizes(self.inputs, plan)
        report.warnings += link_doubts(plan, offered_pps) + _doubts(report)
        return report

    def _min_factor(self, slo_ns: Mapping[str, int]) -> float | None:
        """The least factor on all SLOs with which all are met at full load."""
        low, high = 1.0, 2.0
        while missed_flows(self.scaled(slo_ns, high)):
            low, high = high, 2 * high
            if high > _MAX_FACTOR:
                return None
        for _ in range(_SEARCH_STEPS):
            middle = math.sqrt(low * high)
            if missed_flows(self.scaled(slo_ns, middle)):
                low = middle
            else:
                high = middle
        return high


def _doubts(report: Report) -> list[str]:
    """Reasons why a plan is uncertain, or worse than possible."""
    plan, told = report.plan, []
    silent = [row["flow"] for row in plan["flows"] if row["slo_ns"] and row["share"] <= 0]
    if silent:
        others = f" and {len(silent) - 1} more flows" if silent[1:] else ""
        told.append(f"no packet comes to {silent[0]}{others}: nothing is planned for what is there")
    if not plan["is_settled"]:
        told.append(
            f"triggers had not come to rest after {plan['steps']} periods: the rate is that of the "
            "last one"
        )
    if plan["limited_by"] != LINK and plan["aged_share"] > UNCERTAIN_AGED_SHARE:
        told.append(
            f"{plan['aged_share']:.0%} of the batches leave before they are full, by age: at SLOs "
            "as tight as this a little moves the rate a lot"
        )
    if len(plan["workers"]) > 1:
        told.append(
            "rings between workers are taken as polled at once: what waits in front of the busiest "
            "worker is not in the delays"
        )
    best = max(report.baselines, key=lambda row: row["rate_pps"])
    for row in sorted(report.baselines, key=lambda row: row is not best):
        if row["rate_pps"] > _BETTER * plan["rate_pps"] and keeps(row, 1.0):
            how = "full batches" if row["controller"] == "max" else "no buffers"
            told.append(
                f"with {how} (--controller {row['controller']}) the core would carry "
                f"{row['rate_pps'] / plan['rate_pps'] - 1:.0%} more and keep these SLOs as well"
            )
            break
    return told


def cores_for(offered_pps: float, rate_pps: float, workers: int = 1) -> Cores:
    """Copies of the pipeline that share an offered rate evenly."""
    copies = max(1, math.ceil(offered_pps / rate_pps)) if rate_pps > 0 else 1
    load = offered_pps / (copies * rate_pps) if rate_pps > 0 else math.inf
    return Cores(offered_pps, copies * max(1, workers), load)
