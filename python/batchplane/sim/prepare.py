# SPDX-License-Identifier: BSD-3-Clause
"""prepare.py - reads and checks everything that a simulation needs, before it starts."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..admission.weights import fit_weights
from ..base.problems import BadInput, Problem, RunFailed, suggestion
from ..base.units import parse_duration_ns
from ..changes.events import Action, pipeline_names, resolve_scenario
from ..changes.scenario import Scenario, load_scenario
from ..changes.settings import parse_settings
from ..changes.traffic_state import generator_states
from ..costs.costs import ANY_IN_QUEUE, BUILT_IN, PRIOR, load_costs, resolve
from ..daemon.process import find_program
from ..lang.canonical import Document
from ..lang.check import raise_errors
from ..lang.device_check import device_problems
from ..lang.kinds import Kinds, load_kinds
from ..lang.load import load_pipeline
from ..lang.pipeline import Pipeline
from ..native.check import check_document
from ..routes.declared import followed_flows
from ..routes.resolve import resolve_routes, resolve_schedulers, trace_routes
from ..traces.trace import Trace, read_trace
from .edits import edits_of_sets
from .saturated import SATURATED, saturated
from .spec import Machine, build_spec, check_costs, checked_machine, with_profiled_loop
from .stages import stages_of
from .traffic import Traffic, load_traffic, with_traffic

# After a capture's last packet: time for the generator to see it and for the worker to poll.
_LAST_LOOK_NS = 10_000
# The order of ready modules in a task; see docs/simulator.md.
RUN_ORDERS = ("depth", "deadline")


@dataclass(frozen=True)
class Inputs:
    """Everything that a simulation needs, ready for the extension; can be sent to other
    processes."""

    document: Document
    spec: dict[str, Any]
    actions: tuple[Action, ...] = ()
    edits: tuple[dict[str, Any], ...] = ()  # applied before the first packet
    duration_ns: int | None = None  # of the scenario, else of the captures
    is_captured: bool = False  # the duration is the captures': run until they are used up
    warnings: tuple[str, ...] = ()
    origin: str = ""  # origin of the costs, in words


def duration_ns(value: str | int, what: str) -> int:
    """Nanoseconds of '10ms', or of a number of ns. Raises BadInput."""
    ns = value if type(value) is int else parse_duration_ns(value)
    if ns is None or ns <= 0:
        raise BadInput(Problem(f"'{value}' is not a duration", what, fix="with a unit: 10ms, 1s"))
    return ns


def known_kinds() -> Kinds:
    """The daemon's module kinds; without a daemon program, kinds are not checked."""
    try:
        return load_kinds(find_program())
    except RunFailed:
        return Kinds()


def load_document(
    pipeline: str | Path | Pipeline | Document | dict[str, Any],
    overrides: Mapping[str, str],
    kinds: Kinds,
) -> Document:
    """A pipeline in any of its forms, checked. Raises BadInput with every mistake."""
    if isinstance(pipeline, (str, Path)):
        document = load_pipeline(str(pipeline), overrides, kinds)
    elif overrides:
        name = next(iter(overrides))
        raise BadInput(Problem("params are for pipelines from files", "Simulation", name))
    elif isinstance(pipeline, Document):
        document = pipeline
    else:
        data = pipeline.to_json() if isinstance(pipeline, Pipeline) else pipeline
        document = Document(data, file=str(data.get("name", "pipeline")))
    raise_errors([*check_document(document, kinds), *device_problems(document)])
    return document


def _fit(document: Document) -> None:
    """Fits automatic weights; a missing daemon program is reported later."""
    with contextlib.suppress(RunFailed):
        fit_weights(document, find_program())


def _under_traffic(
    document: Document, traffic: str | Path | Traffic | None, kinds: Kinds, warnings: list[str]
) -> tuple[Document, dict[str, Trace], dict[str, dict[str, str]]]:
    """The pipeline with its traffic, captures by generator, and the declared flows that traffic
    flows follow. Raises BadInput."""
    if traffic is None and generator_states(document.pipeline):
        return document, {}, {}
    if traffic in (None, SATURATED):
        always = saturated(document)
        warnings += [always.told()] if traffic is None else []
        document, traffic = always.document, always.traffic
    elif not isinstance(traffic, Traffic):
        traffic = load_traffic(Path(traffic), document.pipeline, kinds)
    document = with_traffic(document, traffic)
    raise_errors(check_document(document, kinds))
    traces = {name: read_trace(path) for name, path in traffic.traces.items()}
    # The user's own traffic file takes precedence over what the daemon program finds.
    return document, traces, followed_flows(document, traffic.sources_of_flows())


def prepare(
    pipeline: str | Path | Pipeline | Document | dict[str, Any],
    traffic: str | Path | Traffic | None = None,
    costs: Any = None,
    *,
    overrides: Mapping[str, str] | None = None,
    scenario: str | Path | Scenario | None = None,
    sets: Sequence[str] = (),
    machine: Machine | None = None,
    run_order: str | None = None,
    seed: int = 1,
) -> Inputs:
    """Reads and checks everything that a simulation needs. Raises BadInput with every mistake."""
    if run_order not in (None, *RUN_ORDERS):
        fix = suggestion(str(run_order), RUN_ORDERS, ", ".join(RUN_ORDERS))
        raise BadInput(Problem(f"'{run_order}' is not a run order", "--run-order", fix=fix))
    kinds = known_kinds()
    document, warnings = load_document(pipeline, overrides or {}, kinds), list[str]()
    known = _costs_of(document, costs)  # for the pipeline's own ports, before traffic replaces them
    document, traces, followed = _under_traffic(document, traffic, kinds, warnings)
    _fit(document)
    module_costs = {
        name: {key: value for key, value in cost.items() if key != "source"}
        for name, cost in known["modules"].items()
    }
    check_costs(module_costs, document)
    warnings += known["warnings"]
    is_given = isinstance(costs, Mapping) or str(costs or PRIOR) not in BUILT_IN
    stages = stages_of(document, module_costs, is_given)
    warnings += stages.warnings
    module_costs[ANY_IN_QUEUE] = known["in_queue"]
    routes = resolve_routes(document, assignments=followed, warn=warnings.append)
    routes |= {
        name: trace_routes(document, name, trace, warn=warnings.append)
        for name, trace in traces.items()
    }
    machine = checked_machine(machine or Machine())
    machine = with_profiled_loop(machine, known["loop"])
    columns = {
        name: {
            # The extension takes these types and this order without a copy.
            "time_ns": np.ascontiguousarray(trace.time_ns, np.int64),
            "flow": np.ascontiguousarray(trace.flow, np.int32),
            "size_bytes": np.ascontiguousarray(trace.size_bytes, np.int32),
        }
        for name, trace in traces.items()
    }
    spec = build_spec(document, module_costs, routes, machine, columns, seed)
    spec["simulation"]["schedulers"] = resolve_schedulers(document)
    spec["simulation"]["stages"] = stages.laws
    if run_order is not None:
        spec["engine"] = {**spec.get("engine", {}), "run_order": run_order}
    actions: list[Action] = []
    length_ns = captured_ns = _captured_ns(document, traces)
    if scenario is not None:
        if not isinstance(scenario, Scenario):
            scenario = load_scenario(Path(scenario))
        actions = resolve_scenario(scenario, document.pipeline)
        length_ns = scenario.duration_ns
    edits = edits_of_sets(parse_settings(sets, pipeline_names(document.pipeline)))
    return Inputs(
        document,
        spec,
        tuple(actions),
        tuple(edits),
        length_ns,
        captured_ns is not None and scenario is None,
        tuple(warnings),
        "; ".join(part for part in (known["origin"], stages.origin) if part),
    )


_FREE = {"cost_per_batch_ns": 0.0, "cost_per_pkt_ns": 0.0}


def _captured_ns(document: Document, traces: Mapping[str, Trace]) -> int | None:
    """How long the captures last, if nothing else brings packets: afterwards all is idle."""
    if not traces or set(traces) != set(generator_states(document.pipeline)):
        return None
    return _LAST_LOOK_NS + max(int(trace.time_ns[-1]) for trace in traces.values())


def _costs_of(document: Document, costs: Any) -> dict[str, Any]:
    """Costs by module and of the loop, with warnings and origin."""
    pipeline = document.pipeline
    if isinstance(costs, Mapping):
        wrong = [name for name, cost in costs.items() if not isinstance(cost, Mapping)]
        if wrong:
            fix = "{'cost_per_batch_ns': 20, 'cost_per_pkt_ns': 5}"
            problems = [
                Problem(
                    f"the cost of '{name}' is {costs[name]!r}, which is not a law", "costs", fix=fix
                )
                for name in wrong
            ]
            raise BadInput(problems)
        return {
            "modules": costs,
            "in_queue": _FREE,
            "loop": {},
            "warnings": [],
            "origin": "costs as given",
        }
    if costs is not None and not isinstance(costs, (str, Path)):
        raise BadInput(Problem(f"{costs!r} is neither costs nor a costs file", "costs"))
    name = PRIOR if costs is None else costs
    found = resolve(pipeline, load_costs(name), document.file or str(pipeline.get("name", "")))
    told = [problem.line() for problem in found.warnings]
    origin = f"costs: {name}" if found.label == PRIOR else f"costs: {name}, {found.label}"
    where = f", {found.cpu}" if found.cpu else ""
    where += f"; ports: {found.ports}" if found.ports else ""
    return {
        "modules": found.as_json()["modules"],
        "in_queue": _FREE if found.in_queue is None else found.in_queue.as_json(),
        "loop": found.loop,
        # No warning about costs that nobody chose: the origin states them.
        "warnings": [] if costs is None else told,
        "origin": origin + where,
    }
