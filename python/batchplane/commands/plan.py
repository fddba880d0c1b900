# SPDX-License-Identifier: BSD-3-Clause
"""plan.py - what `batchplane plan` does: reads, plans, prints, draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ..base.problems import BadInput, Problem
from ..base.units import parse_scaled
from ..changes.events import pipeline_names
from ..changes.settings import parse_settings
from ..changes.traffic_state import generator_states
from ..costs.cache import cache_path, kept_costs
from ..lang.canonical import Document
from ..lang.load import parse_overrides
from ..native.loader import first_mistake, load_native
from ..plan.knobs import Knobs, knob_inputs
from ..plan.planning import Planner, Report
from ..plan.text import missed_lines, render_plan
from ..sim.edits import edits_of_sets
from ..sim.prepare import Inputs, known_kinds, load_document, prepare
from ..sim.stages import without_devices
from .plan_devices import make_device_report, tell

_DEFAULT_SLO_NS = 1_000_000
_MAX_LINES = 8  # of SLOs that cannot be met
_PLOT_SUFFIXES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class PlanOptions:
    traffic: str | None = None
    slos: tuple[str, ...] = ()
    costs: str | None = None
    rate: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    knobs: Knobs = field(default_factory=Knobs)
    plot: Path | None = None
    as_json: bool = False
    are_devices: bool = False
    device_profile: Path | None = None


def plan(
    name: str | None,
    overrides: Sequence[str],
    options: PlanOptions,
    out: Console,
    errors: Console,
) -> int:
    """Plans and prints. Returns the exit code."""
    if options.are_devices:
        return _plan_devices(name, overrides, options, out, errors)
    if options.device_profile is not None:
        raise _bad("--device-profile", "it is for devices", "give --devices")
    with errors.status("planning", spinner="dots"):
        report = make_report(name, overrides, options)
    if options.plot is not None:
        from ..plan.plot import draw_plan
        from ..plots.base import save

        save(draw_plan(report), options.plot)
    if options.as_json:
        print(json.dumps(report.as_json(), indent=2), flush=True)
    else:
        for warning in report.warnings:
            errors.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
        out.print(render_plan(report))
        if options.plot is not None:
            errors.print(f"rate against SLO plotted in {options.plot}", style="dim")
    for line in missed_lines(report)[:_MAX_LINES]:
        errors.print(Text.assemble(("error: ", "bold red"), line), soft_wrap=True)
    return 2 if report.missed else 0


def _plan_devices(
    name: str | None,
    overrides: Sequence[str],
    options: PlanOptions,
    out: Console,
    errors: Console,
) -> int:
    if name is None or options.knobs.is_given:
        raise _bad("--devices", "it needs a pipeline", "batchplane plan devices --devices")
    if options.plot is not None:
        raise _bad("--plot", "there is no figure of devices", "leave it out")
    if options.settings:
        raise _bad("--control", "placement has no settings of controllers", "leave it out")
    with errors.status("planning", spinner="dots"):
        report = make_device_report(
            name, overrides, options.traffic,
            lambda document: _slos(document, options.slos),
            lambda inputs: _offered(inputs, options),
            options.device_profile, options.costs,
        )  # fmt: skip
    tell(report, options.as_json, out, errors)
    return 0


def make_report(name: str | None, overrides: Sequence[str], options: PlanOptions) -> Report:
    """The whole report. Raises BadInput with every mistake."""
    options.knobs.check(name)
    _check_plot(options.plot)
    assumed: dict[str, Any] = {}
    if name is None:
        if options.traffic is not None or options.costs is not None or overrides:
            given = "--traffic" if options.traffic else "--costs" if options.costs else overrides[0]
            raise _bad(given, "it needs a pipeline, and none is given", "leave it out")
        inputs, assumed = knob_inputs(options.knobs)
    else:
        inputs = _inputs_of(name, overrides, options)
    slo_ns, assumption = _slos(inputs.document, options.slos)
    native = load_native()
    try:
        report = Planner(inputs, options.settings).report(
            slo_ns, _offered(inputs, options), options.plot is not None
        )
    except native.ConfigError as error:
        raise first_mistake(error, "command line") from error
    if not any(row["share"] > 0 for row in report.plan["flows"]):
        raise BadInput(
            Problem(
                "no packet reaches the end of any declared flow",
                inputs.document.file, "flows",
                "find the drops with batchplane simulate, or give other --traffic FILE",
            )
        )  # fmt: skip
    report.assumed = assumed
    report.warnings = [*assumption, *report.warnings]
    return report


def _inputs_of(name: str, overrides: Sequence[str], options: PlanOptions) -> Inputs:
    document = load_document(name, parse_overrides(overrides), known_kinds())
    costs: str | Path | None = options.costs
    if costs is None and kept_costs(document.pipeline).costs is not None:
        costs = cache_path(document.pipeline)
    plain, told = without_devices(document)
    inputs = prepare(plain, options.traffic, costs)
    inputs = replace(inputs, warnings=(*told, *inputs.warnings))
    if costs is None:
        words = " ".join([name, *overrides])
        # This command measures and keeps the costs of this very pipeline.
        origin = f"{inputs.origin}; measure with: batchplane run {words} --controller optimal"
        inputs = Inputs(inputs.document, inputs.spec, warnings=inputs.warnings, origin=origin)
    return inputs


def _slos(document: Document, given: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """The SLO of each flow, 0 = none: the pipeline's, overridden by `given`, and lines about SLOs
    that are assumed if there are none. Raises BadInput."""
    slo_ns = {
        str(flow["name"]): int(flow.get("delay_slo_ns") or 0)
        for flow in document.pipeline.get("flows", [])
    }
    if not slo_ns:
        raise BadInput(
            Problem(
                "the pipeline declares no flow to give an SLO to",
                document.file, "flows", "flows: [{name: a, path: [in, ..., out]}]",
            )
        )  # fmt: skip
    words = []
    for word in given:
        flow, equals, time = word.partition("=")
        words.append(f"{flow}.slo={time}" if equals else f"*.slo={word}")
    for edit in edits_of_sets(parse_settings(words, pipeline_names(document.pipeline))):
        slo_ns.update(edit.get("slo_ns", {}))
    if not any(slo_ns.values()) and given:
        raise _bad("--slo", "no flow has an SLO, so there is nothing to plan for", "--slo 100us")
    if not any(slo_ns.values()):
        told = "no flow has an SLO: 1 ms is assumed for each of them (--slo TIME for another)"
        return dict.fromkeys(slo_ns, _DEFAULT_SLO_NS), [told]
    return slo_ns, []


def _offered(inputs: Inputs, options: PlanOptions) -> float | None:
    """The offered rate in pps: as given, or from generators and captures; None if unknown."""
    if options.rate is not None:
        rate_pps = parse_scaled(options.rate)
        if rate_pps is None or rate_pps <= 0:
            raise _bad("--rate", f"'{options.rate}' is not a rate", "packets per second: 5M, 250k")
        return rate_pps
    pipeline = inputs.document.pipeline
    states = generator_states(pipeline)
    traces = inputs.spec["simulation"]["traces"]
    total = 0.0
    for entry in pipeline.get("generators", []):
        params, name = entry.get("params", {}), entry["name"]
        if name in traces and not options.knobs.is_given and traces[name]["time_ns"][-1] > 0:
            times = traces[name]["time_ns"]
            total += len(times) * 1e9 / float(times[-1])
        elif "rate_pps" in params and not params.get("saturate"):
            own = sum(flow.rate_pps for flow in states[name].flows)
            total += own + (states[name].rate_pps if states[name].shared else 0.0)
        else:
            return None
    return total or None


def _check_plot(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix not in _PLOT_SUFFIXES:
        raise _bad("--plot", f"'{path}' is not a figure", f"one of: {', '.join(_PLOT_SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise _bad("--plot", f"there is no folder '{path.parent}'", "make it first")


def _bad(word: str, message: str, fix: str) -> BadInput:
    return BadInput(Problem(message, "command line", word, fix))
