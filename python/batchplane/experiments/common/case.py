# SPDX-License-Identifier: BSD-3-Clause
"""case.py - one run of an experiment, and a hash of everything that determines its outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...base.problems import RunFailed
from ...changes.events import Action, pipeline_names, resolve_scenario
from ...changes.scenario import parse_scenario
from ...changes.settings import parse_settings
from ...costs.keys import cpu_name
from ...daemon.process import find_program
from ...native.loader import extension_path
from ...sim.edits import edits_of_sets
from ...sim.prepare import Inputs, prepare

# A change in one of these files may invalidate kept results.
_RESULT_CODE = (
    "sim/simulation.py",
    "sim/result.py",
    "sim/edits.py",
    "sim/cases.py",
    "traces/cut.py",
    "traces/make.py",
    "traces/model.py",
    "experiments/common/case.py",
    "experiments/common/measure.py",
    "experiments/common/replay.py",
)
_MEASURING_CODE = (
    "experiments/common/case.py",
    "experiments/common/daemon_periods.py",
    "experiments/common/daemon_run.py",
)
# No buffer has its own age limit, and no packet is stranded within an experiment: the papers' rule.
NO_LIMIT = "1000s"
_NO_LIMIT_NS = 1_000_000_000_000


@dataclass(frozen=True)
class Case:
    """A pipeline under a controller for some periods, in virtual time or on a daemon."""

    key: str  # unique in its experiment: "gateway_16/full/seed 1"
    pipeline: str  # a name in pipelines/, or a canonical pipeline as JSON
    controller: str
    params: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the controller
    sets: tuple[str, ...] = ()  # applied before the first packet, as by `batchplane set`
    events: str = ""  # a scenario
    engine: Mapping[str, Any] = field(default_factory=dict)  # settings, such as execution
    trace: Mapping[str, Any] = field(default_factory=dict)  # replay.py: what the generator replays
    run_order: str = "depth"
    costs: str = "prior"
    own_costs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of some modules
    loop: Mapping[str, float] = field(default_factory=dict)  # the engine's own costs
    overflow: str = "wait"  # packets that find the ring full (simulated only): wait, or drop
    period_ns: int = 10_000_000
    warmup_periods: int = 0
    periods: int = 30
    seed: int = 1
    watched_module: str = ""  # record its trigger for each period
    watched_flow: str = ""  # record its delay and SLO for each period
    by_module: bool = False  # also batches, packets and drops of each module (simulated only)

    @property
    def duration_ns(self) -> int:
        """Warm-up and measured periods."""
        return self.period_ns * (self.warmup_periods + self.periods)


@lru_cache(maxsize=256)
def _prepared(pipeline: str, params: str, costs: str, run_order: str) -> Inputs:
    overrides = {key: _word(value) for key, value in json.loads(params).items()}
    given = json.loads(pipeline) if pipeline.startswith("{") else pipeline
    inputs = prepare(given, costs=costs, overrides=overrides, run_order=run_order)
    engine = {**inputs.spec.get("engine", {}), "stranding_limit_ns": _NO_LIMIT_NS}
    return replace(inputs, spec={**inputs.spec, "engine": engine})


def inputs_of(case: Case) -> Inputs:
    """The simulator's input for the case. Raises BadInput."""
    params = json.dumps(dict(case.params), sort_keys=True)
    inputs = _prepared(case.pipeline, params, case.costs, case.run_order)
    if case.engine:
        inputs = _with_engine(inputs, case.engine)
    if case.own_costs or case.loop or case.overflow != "wait":
        part = inputs.spec["simulation"]
        costs = {**part["costs"], **case.own_costs}
        loop = {**part["loop"], **case.loop}
        part = {**part, "costs": costs, "loop": loop, "overflow": case.overflow}
        inputs = replace(inputs, spec={**inputs.spec, "simulation": part})
    pipeline = inputs.document.pipeline
    actions: tuple[Action, ...] = ()
    if case.events:
        scenario = parse_scenario(case.events, f"events of {case.key}")
        actions = tuple(resolve_scenario(scenario, pipeline))
    edits = tuple(edits_of_sets(parse_settings(list(case.sets), pipeline_names(pipeline))))
    return replace(inputs, actions=actions, edits=edits)


def _with_engine(inputs: Inputs, settings: Mapping[str, Any]) -> Inputs:
    """Overrides settings of the engine, for simulator and daemon."""
    engine = {**inputs.document.pipeline.get("engine", {}), **settings}
    document = replace(inputs.document, pipeline={**inputs.document.pipeline, "engine": engine})
    spec = {**inputs.spec, "engine": {**inputs.spec["engine"], **settings}}
    return replace(inputs, document=document, spec=spec)


def digest(case: Case, inputs: Inputs, is_measured: bool = False) -> str:
    """A hash of everything that determines the result: case, pipeline, costs, and the program."""
    what: dict[str, Any] = {"case": asdict(case)}
    if is_measured:
        what |= {"pipeline": inputs.document.pipeline, "cpu": cpu_name(), "daemon": _daemon()}
    else:
        what |= {"spec": inputs.spec, "simulator": _simulator()}
    text = json.dumps(what, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@lru_cache(maxsize=1)
def _simulator() -> str:
    """A hash of the code that turns inputs into results, in C++ and in Python."""
    extension = extension_path()
    if extension is None:
        raise RunFailed("the simulator is not built", "tools/build.sh run native")
    return _hash_of(extension, _RESULT_CODE)


@lru_cache(maxsize=1)
def _daemon() -> str:
    """A hash of the daemon and the code that measures it."""
    return _hash_of(find_program(), _MEASURING_CODE)


def _hash_of(program: Path, names: tuple[str, ...]) -> str:
    package = Path(__file__).resolve().parents[2]
    made = hashlib.sha256(program.read_bytes())
    for name in names:
        made.update((package / name).read_bytes())
    return made.hexdigest()


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
