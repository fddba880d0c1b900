# SPDX-License-Identifier: BSD-3-Clause
"""resolve.py - finds the gate of each splitter for each traffic flow, for the simulator.

The daemon program knows it exactly: it sends a packet of each flow through the real modules.
Without the program, the routes recorded in known.json apply, or declared flows with the same name
or named by `flow:` of a traffic flow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, RunFailed, suggestion
from ..daemon.process import find_program
from ..lang.canonical import Document
from ..lang.check import ask_program, daemon_problem
from ..traces.trace import Trace
from .declared import DeclaredRoutes, followed_flows, traffic_flow_names
from .known import known_gates

_MAX_CACHED = 16

Gate = int | str  # a number, "drop", or (without the daemon program) a gate's name
Route = dict[str, Any]  # {"name": traffic flow, "gates": {splitter: Gate}}
Assignments = Mapping[str, Mapping[str, str]]  # generator -> traffic flow -> declared flow


@dataclass(frozen=True)
class Probe:
    """The answer of `batchplaned --routes`."""

    routes: dict[str, list[dict[str, Any]]]  # by generator or source: name, gates, ways
    frames: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    free: dict[str, list[float]] = field(default_factory=dict)  # splitter -> share of each gate
    warnings: list[str] = field(default_factory=list)
    schedulers: dict[str, dict[str, Any]] = field(default_factory=dict)  # by egress: its parameters


@dataclass(frozen=True)
class GroupedProbe:
    """The answer of `batchplaned --routes --grouped`: flows with the same route are one row."""

    routes: dict[str, list[dict[str, Any]]]  # by generator or source: ways, flows, scheduled
    schedulers: dict[str, dict[str, Any]]  # by egress: parameters; of a tree only its discipline


_cache: dict[str, Probe] = {}


def resolve_routes(
    document: Document,
    daemon: Path | None = None,
    assignments: Assignments | None = None,
    warn: Callable[[str], None] | None = None,
) -> dict[str, list[Route]]:
    """{generator: [{name, gates} of each traffic flow in order]}, with inline sources included.

    `assignments` names the declared flow that a traffic flow follows; it takes precedence over the
    daemon program. `warn` gets a line for everything that routes cannot represent.
    """
    assignments = assignments or {}
    _check_assignments(document, assignments)
    declared = DeclaredRoutes(document)
    program = daemon if daemon is not None else _program_if_any()
    if program is None:
        return _without_program(document, declared, assignments)
    probe = probe_routes(document, program)
    if warn is not None and not _all_named(document, assignments):
        for line in probe.warnings:
            warn(line)
    routes: dict[str, list[Route]] = {}
    for source, found in probe.routes.items():
        named = assignments.get(source, {})
        routes[source] = [
            _route(
                entry["name"],
                declared.gates(source, entry["name"], named[entry["name"]])
                if entry["name"] in named
                else entry["gates"],
            )
            for entry in found
        ]
    return routes


def resolve_schedulers(document: Document, daemon: Path | None = None) -> dict[str, dict[str, Any]]:
    """The parameters of each `egress` scheduler. Raises BadInput without the program."""
    modules = document.pipeline.get("modules", {})
    names = [name for name, module in modules.items() if module["kind"] == "egress"]
    if not names:
        return {}
    program = daemon if daemon is not None else _program_if_any()
    if program is None:
        raise BadInput(
            Problem(
                f"what '{names[0]}' schedules is unknown", document.where(f"modules.{names[0]}"),
                f"modules.{names[0]}", "build the daemon, which knows it: make build",
            )
        )  # fmt: skip
    return probe_routes(document, program).schedulers


def _all_named(document: Document, assignments: Assignments) -> bool:
    """Whether `assignments` covers every traffic flow, so that no packet needs to be sent."""
    names = traffic_flow_names(document)
    return all(assignments.get(source, {}).keys() >= set(names[source]) for source in names)


def _without_program(
    document: Document, declared: DeclaredRoutes, assignments: Assignments
) -> dict[str, list[Route]]:
    known = known_gates(document)
    followed = {} if known else followed_flows(document)
    routes: dict[str, list[Route]] = {}
    for source, names in traffic_flow_names(document).items():
        named = {**followed.get(source, {}), **assignments.get(source, {})}
        routes[source] = [
            _route(
                name,
                known[source][i]
                if source in known and name not in named
                else declared.gates(source, name, named.get(name)),
            )
            for i, name in enumerate(names)
        ]
    return routes


def trace_routes(
    document: Document,
    source: str,
    trace: Trace,
    daemon: Path | None = None,
    warn: Callable[[str], None] | None = None,
) -> list[Route]:
    """The routes of a trace's flows, each by its first packet, if `source` brings it in.

    Without the daemon program they are known only if no module chooses; `warn` is told so.
    """
    unseen = [
        name for name, frame in zip(trace.names, trace.first_frames, strict=True) if not frame
    ]
    if unseen:
        raise BadInput(
            Problem(f"no packet of the trace is of traffic flow '{unseen[0]}'", fix="drop its rule")
        )
    program = daemon if daemon is not None else _program_if_any()
    if program is None:
        if not DeclaredRoutes(document).is_blind(source):
            raise BadInput(
                Problem(
                    f"the routes of the trace's packets behind '{source}' are unknown",
                    document.file,
                    fix="build the daemon, which finds them: make build",
                )
            )
        if warn is not None:
            warn("the daemon is not built: drops of trace packets are not detected")
        return [_route(name, {}) for name in trace.names]
    frames = {source: [frame.hex() for frame in trace.first_frames]}
    found = probe_routes(document, program, frames).frames[source]
    return [_route(name, entry["gates"]) for name, entry in zip(trace.names, found, strict=True)]


def _route(name: str, gates: Mapping[str, Gate]) -> Route:
    return {"name": name, "gates": dict(gates)}


def _program_if_any() -> Path | None:
    try:
        return find_program()
    except RunFailed:
        return None


def _check_assignments(document: Document, assignments: Assignments) -> None:
    problems = []
    names = traffic_flow_names(document)
    flows = [str(flow["name"]) for flow in document.pipeline.get("flows", [])]
    known_flows = set(flows)
    for source, named in assignments.items():
        if source not in names:
            problems.append(
                Problem(f"there is no generator '{source}'", fix=suggestion(source, names))
            )
            continue
        known_names = set(names[source])
        for name, flow in named.items():
            key = f"{source}.{name}"
            if name not in known_names:
                fix = suggestion(name, names[source])
                message = f"generator '{source}' has no flow '{name}'"
                problems.append(Problem(message, key=key, fix=fix))
            if flow not in known_flows:
                fix = suggestion(flow, flows, "declare it under flows:")
                problems.append(
                    Problem(f"there is no declared flow '{flow}'", key=f"{key}.flow", fix=fix)
                )
    if problems:
        raise BadInput(problems)


# --- the daemon's program ------------------------------------------------------------------------


def probe_routes(
    document: Document, program: Path, frames: Mapping[str, Sequence[str]] | None = None
) -> Probe:
    """Asks the daemon program; `frames`: further packets (hex) by generator or source."""
    text = json.dumps(
        {**document.pipeline, "source_map": {}, "frames": frames or {}}, sort_keys=True
    )
    try:
        stat = program.stat()
    except OSError as error:
        raise RunFailed(f"{program} is not there", "build it: make build") from error
    key = hashlib.sha256(f"{program} {stat.st_mtime_ns} {text}".encode()).hexdigest()
    if key not in _cache:
        while len(_cache) >= _MAX_CACHED:
            _cache.pop(next(iter(_cache)))
        answer = _ask(document, program, frames)
        _cache[key] = Probe(
            answer["routes"],
            answer.get("frames", {}),
            {name: entry["weights"] for name, entry in answer.get("free", {}).items()},
            answer.get("warnings", []),
            answer.get("schedulers", {}),
        )
    return _cache[key]


def probe_grouped(
    document: Document, program: Path, answer: dict[str, Any] | None = None
) -> GroupedProbe:
    """Like probe_routes(), for very many traffic flows: 100,000 would be 60 MB of routes.

    `answer`: what a check has found of them already.
    """
    if answer is None:
        answer = _ask(document, program, None, "--grouped")
    return GroupedProbe(answer["routes"], answer["schedulers"])


def _ask(
    document: Document, program: Path, frames: Mapping[str, Sequence[str]] | None, *options: str
) -> dict[str, Any]:
    # Routes do not depend on the run order, and the daemon knows only one.
    engine = dict(document.pipeline.get("engine") or {})
    engine.pop("run_order", None)
    pipeline = {**document.pipeline, "engine": engine}
    answer = ask_program(program, "--routes", pipeline, *options, frames=frames)
    errors = answer.get("errors", [])
    if errors:
        raise BadInput([daemon_problem(error, document) for error in errors])
    return answer
