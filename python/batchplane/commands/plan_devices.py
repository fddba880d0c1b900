# SPDX-License-Identifier: BSD-3-Clause
"""plan_devices.py - what `batchplane plan PIPELINE --devices` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ..base.measured_devices import measured_file, measured_names
from ..base.problems import BadInput, Problem
from ..changes.traffic_state import generator_states
from ..costs.cache import kept_costs
from ..costs.costs import PRIOR, CostsFile, load_costs
from ..costs.devices import COMMAND, DeviceProfile, kept_device_profile, load_device_profile
from ..lang.canonical import Document
from ..lang.load import parse_overrides
from ..native.loader import first_mistake, load_native
from ..plan.device_case import make_case, require_stages
from ..plan.device_text import DeviceReport, render_report
from ..plan.devices import bought, plan_sets, too_many
from ..plan.planning import Planner
from ..sim.prepare import Inputs, known_kinds, load_document, prepare
from ..sim.stages import without_devices


def chosen_profile(
    pipeline: Mapping[str, Any], given: Path | None
) -> tuple[DeviceProfile | None, str]:
    """The profile to plan with and its origin. Raises BadInput if the kept one is unusable."""
    if given is not None:
        if not given.exists() and str(given) in measured_names():
            given = measured_file(str(given))
        profile = load_device_profile(given)
        return profile, f"{given}, measured on {profile.cpu or 'an unknown CPU'}, {profile.date}"
    kept = kept_device_profile(pipeline)
    if kept.profile is not None:
        passed_over = f"; {kept.file} {kept.reason}" if kept.reason else ""
        return kept.profile, f"measured here, {kept.profile.date}{passed_over}"
    if kept.reason:
        message = f"the saved profile of devices {kept.reason}"
        fix = f"{COMMAND}, or --device-profile FILE to take it all the same"
        raise BadInput(Problem(message, kept.file, fix=fix))
    return None, f"no device was measured here ({COMMAND}); costs of the worker, and a usual way"


def mean_bytes(inputs: Inputs, shares: Mapping[str, float]) -> dict[str, float]:
    """The mean frame size at each module, from the flows that reach it."""
    pipeline = inputs.document.pipeline
    sizes: dict[str, list[tuple[float, float]]] = {}
    for name, state in generator_states(pipeline).items():
        entries = _entries_of(pipeline, name)
        for flow, entry in zip(state.flows, entries, strict=False):
            weight = flow.rate_pps or flow.weight
            sizes.setdefault(str(entry.get("flow", "")), []).append((weight, flow.size_bytes))
    for trace in inputs.spec["simulation"]["traces"].values():
        sizes.setdefault("", []).append((1.0, float(trace["size_bytes"].mean())))
    everything = [pair for pairs in sizes.values() for pair in pairs]
    found = {}
    for module in shares:
        through = [
            str(flow["name"])
            for flow in pipeline.get("flows", [])
            if module in [str(step).partition(":")[0] for step in flow["path"]]
        ]
        own = [pair for name in through for pair in sizes.get(name, [])] or everything
        total = sum(weight for weight, _ in own)
        found[module] = sum(w * n for w, n in own) / total if total > 0 else 64.0
    return found


def _entries_of(pipeline: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    for generator in pipeline.get("generators", []):
        if generator["name"] == name:
            flows = generator.get("params", {}).get("flows") or [{}]
            return [flow for flow in flows for _ in range(int(flow.get("count", 1)))]
    return []


def make_device_report(
    name: str,
    overrides: Sequence[str],
    traffic: str | None,
    slo_of: Callable[[Document], tuple[dict[str, int], list[str]]],
    offered_of: Callable[[Inputs], float | None],
    given_profile: Path | None,
    costs: str | None,
) -> DeviceReport:
    """The whole report. Raises BadInput."""
    document = load_document(name, parse_overrides(overrides), known_kinds())
    pipeline = document.pipeline
    require_stages(pipeline, document.file)
    profile, origin = chosen_profile(pipeline, given_profile)
    kept = None if costs else kept_costs(pipeline).costs
    file: CostsFile = kept or load_costs(costs or PRIOR)
    # Each module gets the same packets, wherever modules run.
    inputs = prepare(without_devices(document)[0], traffic, costs)
    slo_ns, assumed = slo_of(inputs.document)
    # If the traffic is assumed, its flows are too.
    pipeline = {**pipeline, "flows": inputs.document.pipeline.get("flows", [])}
    offered = offered_of(inputs)
    if offered is None:
        message = "nobody says how many packets are offered"
        raise BadInput(Problem(message, "command line", "--rate", "packets per second: 5M, 250k"))
    native = load_native()
    try:
        plan = Planner(inputs).plan(slo_ns, "null")
        shares = {row["module"]: float(row["share"]) for row in plan["modules"]}
        case, told = make_case(
            pipeline, shares, offered, mean_bytes(inputs, shares), slo_ns, profile, file,
            kept is not None,
        )  # fmt: skip
        if not case.apps or not case.laws:
            message = "no packet comes to a module with a device that anybody has measured"
            raise BadInput(Problem(message, document.file, "modules", COMMAND))
        reason = too_many(case)
        if reason:
            raise BadInput(Problem(reason, document.file, "devices"))
        rows = plan_sets(case)
    except native.ConfigError as error:
        raise first_mistake(error, "plan") from error
    return DeviceReport(
        str(pipeline.get("name", name)),
        case,
        rows,
        bought(case, rows),
        origin,
        [*assumed, *inputs.warnings, *told],
    )


def tell(report: DeviceReport, as_json: bool, out: Console, errors: Console) -> None:
    if as_json:
        print(json.dumps(report.as_json(), indent=2), flush=True)
        return
    for warning in report.warnings:
        errors.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
    out.print(render_report(report))
