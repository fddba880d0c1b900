# SPDX-License-Identifier: BSD-3-Clause
"""stages.py - modules on devices in a simulation: their batch times, or a pipeline without
devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..base.problems import BadInput, Problem
from ..costs.batch_law import BatchLaw
from ..costs.batch_laws import BatchLaws
from ..costs.devices import COMMAND, INLINE, kept_device_profile
from ..lang.canonical import Document


@dataclass(frozen=True)
class Stages:
    """The simulator's input about devices."""

    laws: dict[str, dict[str, Any]]  # `simulation.stages`, by module
    origin: str = ""  # of the laws, in words
    warnings: tuple[str, ...] = ()


def staged_modules(document: Document) -> list[str]:
    """The modules that have a device."""
    modules = document.pipeline.get("modules", {})
    return [name for name, module in modules.items() if "device" in module]


def without_devices(document: Document) -> tuple[Document, tuple[str, ...]]:
    """The pipeline with every module on its worker, for plans, and remarks about that."""
    moved = staged_modules(document)
    if not moved:
        return document, ()
    modules = document.pipeline["modules"]
    plain = {
        name: {key: value for key, value in module.items() if key != "device"}
        for name, module in modules.items()
    }
    pipeline = {**document.pipeline, "modules": plain}
    pipeline.pop("devices", None)
    pipeline.pop("placement", None)
    told = f"this plan knows no devices: {', '.join(moved)} run on their worker (plan --devices)"
    return replace(document, pipeline=pipeline), (told,)


def stages_of(
    document: Document, costs: Mapping[str, Mapping[str, Any]], are_own_costs: bool
) -> Stages:
    """The batch times on each device that a module may run on. `costs`: by module, on its worker;
    `are_own_costs`: they were given for this pipeline. Raises BadInput for unknown ones."""
    pipeline = document.pipeline
    names = staged_modules(document)
    if not names:
        return Stages({})
    kept = kept_device_profile(pipeline)
    passed_over = kept.warning()
    warnings = [] if passed_over is None else [passed_over.line()]

    def cost_of(name: str) -> tuple[BatchLaw, str] | None:
        if name not in costs:
            return None
        keys = ("cost_per_batch_ns", "cost_per_pkt_ns")
        return BatchLaw.of_line(float(costs[name].get(key, 0)) for key in keys), "costs"

    known = BatchLaws(pipeline, kept.profile, cost_of, are_own_costs)
    devices = pipeline.get("devices", {})
    stages: dict[str, dict[str, Any]] = {}
    origins: dict[str, None] = {}
    problems = []
    for name in names:
        laws: dict[str, Any] = {}
        places = pipeline["modules"][name]["device"]["on"]
        # Names that are no device are rejected with the other mistakes.
        for on in (place for place in places if place != INLINE and place in devices):
            law = known.of(name, str(devices[on]["kind"]), devices[on].get("params", {}))
            if law is not None:
                laws[on] = law.law.as_json()
            if on == places[0] or pipeline.get("placement"):
                problems += [] if law is not None else [_unknown(document, name, on)]
                origins |= {} if law is None else {f"{on} ({law.origin})": None}
        stages[name] = {"laws": laws}
    if problems:
        raise BadInput(problems)
    told = f"batches on {', '.join(origins)}" if origins else ""
    return Stages(stages, told, tuple(warnings))


def _unknown(document: Document, module: str, device: str) -> Problem:
    kind = document.pipeline["modules"][module]["kind"]
    return document.problem(
        f"devices.{device}",
        f"nobody knows what batches of '{module}' take on '{device}'",
        f"give it laws: {{{kind}: {{batch: 20us, pkt_ns: 10, byte_ns: 0.1}}}}, or {COMMAND}",
    )
