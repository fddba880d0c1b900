# SPDX-License-Identifier: BSD-3-Clause
"""spec.py - the simulator's input: a pipeline with costs, routes and a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..base.json_file import read_json
from ..base.problems import BadInput, Problem, suggestion
from ..changes.traffic_state import generator_states
from ..costs.file import LOOP_KEYS as COSTS_LOOP_KEYS
from ..costs.file import LOOP_PARTS
from ..lang.canonical import Document

# The same names as in a costs file's loop; taking a batch from a ring is free here.
LOOP_KEYS = tuple(key for key in COSTS_LOOP_KEYS if key != "ring_take_per_batch_ns")
_GENERATOR_PKT = "generator_per_pkt_ns"
_DEFAULT_PKT_NS = 25.0
OVERFLOWS = ("wait", "drop")
_STALLS = (
    ("stall_rate_per_s", "stall_lengths_ns"),
    ("generator_stall_rate_per_s", "generator_stall_lengths_ns"),
)
# Longer times are mistakes of a unit, not costs of a loop or a packet.
_MAX_NS = 1e9


@dataclass(frozen=True)
class Machine:
    """The simulated machine: the costs of its loop, and its disturbances."""

    # By LOOP_KEYS; missing: as profiled, else 0, but 50 an empty poll, 25 a generator's packet.
    loop: dict[str, float] = field(default_factory=dict)
    overflow: str = "wait"  # ring full: the generator waits, or the packet is lost
    noise_sigma: float = 0.0  # of a random factor on every execution's cost
    stall_rate_per_s: float = 0.0
    stall_lengths_ns: tuple[int, ...] = ()  # of the workers; one is drawn, all equally likely
    generator_stall_rate_per_s: float = 0.0  # the same for the generators' cores
    generator_stall_lengths_ns: tuple[int, ...] = ()
    move_ns: float = 40_000.0  # workers stand still for so long when a part moves; bench/moves.py

    def spec(self) -> dict[str, Any]:
        """The machine in the form of the extension."""
        return {
            "loop": {_GENERATOR_PKT: _DEFAULT_PKT_NS, **self.loop},
            "overflow": self.overflow,
            "noise": {"sigma": self.noise_sigma},
            "stalls": {
                "rate_per_s": self.stall_rate_per_s,
                "lengths_ns": list(self.stall_lengths_ns),
            },
            "generator_stalls": {
                "rate_per_s": self.generator_stall_rate_per_s,
                "lengths_ns": list(self.generator_stall_lengths_ns),
            },
            "move_ns": self.move_ns,
        }


def loop_of_profile(loop: Mapping[str, float]) -> dict[str, float]:
    """The engine's own costs of a costs file, without those that the simulator charges itself and
    that were measured as part of others: no file has a part that costs more than its whole."""
    mine = {key: loop[key] for key in LOOP_KEYS if key in loop}
    if mine.get(_GENERATOR_PKT) == 0:
        del mine[_GENERATOR_PKT]  # it was not measured
    for whole, part in LOOP_PARTS.items():
        if whole in mine and part in mine:
            mine[whole] -= mine[part]
    return mine


def with_profiled_loop(machine: Machine, loop: Mapping[str, float]) -> Machine:
    """The machine, completed by a costs file's `loop`."""
    return replace(machine, loop={**loop_of_profile(loop), **machine.loop})


def load_machine(path: Path) -> Machine:
    """Reads a machine from a JSON file with the fields of Machine. Raises BadInput."""
    data = read_json(path, "JSON")
    if not isinstance(data, dict):
        raise BadInput(
            Problem("a machine file must be a mapping", str(path), fix='{"noise_sigma": 0.1}')
        )
    known = [entry.name for entry in fields(Machine)]
    unknown = [key for key in data if key not in known]
    if unknown:
        raise BadInput(
            [
                Problem(f"unknown key '{key}'", str(path), key, suggestion(key, known))
                for key in unknown
            ]
        )
    for _, lengths in _STALLS:
        if isinstance(data.get(lengths), list):
            data[lengths] = tuple(data[lengths])
    return checked_machine(Machine(**data), str(path))


def checked_machine(machine: Machine, where: str = "") -> Machine:
    """The machine, if its values are valid. Raises BadInput."""
    problems = []
    loop: Any = machine.loop
    if not isinstance(loop, Mapping):
        message = f"the loop is {loop!r}, which is not a mapping of costs"
        problems.append(Problem(message, where, "loop", '{"poll_per_batch_ns": 40}'))
        loop = {}
    for key, value in loop.items():
        if key not in LOOP_KEYS:
            fix = suggestion(key, LOOP_KEYS)
            problems.append(Problem(f"unknown key '{key}'", where, f"loop.{key}", fix))
        elif not _is_time(value):
            problems.append(
                Problem(f"{value!r} is not a time in ns", where, f"loop.{key}", "0 to 1e9")
            )
    plain = {entry.name: getattr(machine, entry.name) for entry in fields(Machine)}
    for key in ("noise_sigma", "move_ns", *(rate for rate, _ in _STALLS)):
        if not _is_time(plain[key]):
            problems.append(Problem(f"{plain[key]!r} is not 0 or more", where, key, "0 to 1e9"))
    if machine.overflow not in OVERFLOWS:
        problems.append(
            Problem(f"'{machine.overflow}' is unknown", where, "overflow", "wait, drop")
        )
    for rate, lengths in _STALLS:
        if not isinstance(plain[lengths], (list, tuple)):
            message = f"{plain[lengths]!r} is not a list of times in ns"
            problems.append(Problem(message, where, lengths, "for example [200000]"))
            continue
        if not all(_is_time(length) and length > 0 for length in plain[lengths]):
            message = "stall lengths must be positive times in ns"
            problems.append(Problem(message, where, lengths))
        if plain[rate] and not plain[lengths]:
            message = "a stall rate is given, but stall lengths are missing"
            problems.append(Problem(message, where, lengths, "for example [200000]"))
    if problems:
        raise BadInput(problems)
    return machine


def check_costs(costs: dict[str, dict[str, Any]], document: Document) -> None:
    """Checks that every module has a valid cost. Raises BadInput with all that have not."""
    problems = []
    for name in document.pipeline.get("modules", {}):
        cost = costs.get(name)
        if cost is None:
            fix = f"batchplane profile --pipeline {document.file} --out costs.json"
            problems.append(document.problem(f"modules.{name}", f"'{name}' has no cost", fix))
            continue
        if not isinstance(cost.get("table_ns") or (), (list, tuple)):
            message = f"the table_ns of '{name}' is {cost['table_ns']!r}, which is not a list"
            problems.append(document.problem(f"modules.{name}", message, "one time per batch size"))
            continue
        for key in ("cost_per_batch_ns", "cost_per_pkt_ns"):
            value = cost.get(key, 0.0)
            if not _is_time(value):
                message = f"the {key} of '{name}' is {value!r}, which is not a time"
                problems.append(document.problem(f"modules.{name}", message, "0 to 1e9 ns"))
        for value in cost.get("table_ns") or ():
            if not _is_time(value):
                message = f"the table_ns of '{name}' holds {value!r}, which is not a time"
                problems.append(document.problem(f"modules.{name}", message, "0 to 1e9 ns"))
                break
    for name in costs:
        if name not in document.pipeline.get("modules", {}):
            fix = suggestion(name, document.pipeline.get("modules", {}))
            problems.append(
                Problem(f"a cost is given for '{name}', which is not a module", fix=fix)
            )
    if problems:
        raise BadInput(problems)


def _is_time(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= value <= _MAX_NS


def build_spec(
    document: Document,
    costs: dict[str, dict[str, Any]],
    routes: dict[str, list[dict[str, Any]]],
    machine: Machine,
    traces: dict[str, Any] | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """The input of _native.Simulation."""
    states = generator_states(document.pipeline)
    for source, entries in routes.items():
        flows = {flow.name: flow for flow in states[source].flows} if source in states else {}
        for entry in entries:
            flow = flows.get(entry["name"])
            if flow is not None and source not in (traces or {}):
                entry.update(weight=flow.weight, rate_pps=flow.rate_pps, size_bytes=flow.size_bytes)
    return {
        **document.pipeline,
        "simulation": {
            **machine.spec(),
            "costs": costs,
            "routes": routes,
            "traces": traces or {},
            "seed": seed,
        },
    }
