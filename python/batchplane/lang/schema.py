# SPDX-License-Identifier: BSD-3-Clause
"""schema.py - the shape of a pipeline file as pydantic models, and the JSON schema for editors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from ..base import limits
from .device_schema import DeviceUseModel, PlacementModel, Strict
from .kinds import Kinds, ModuleKind, ParamSpec

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=64)]


def within(limit: limits.Limit) -> Any:
    """The pydantic annotation of a field with that limit."""
    return Field(ge=limit.least, le=limit.most)


Core = Annotated[int, within(limits.CORE)]


class _WithParams(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    def params(self) -> dict[str, Any]:
        """The keys that are not reserved."""
        return dict(self.model_extra or {})


class ExecutionModel(Strict):
    """How tasks execute; `execution: wfq` alone is short for its mode."""

    mode: str = Field(
        default="run_to_completion",
        pattern="^(run_to_completion|wfq)$",
        description="run batches to completion, or share the core among module queues by weight",
    )
    schedule_by: str = Field(
        default="cycles",
        pattern="^(cycles|count)$",
        description="what a turn costs a module: CPU cycles, or 1",
    )
    backpressure: str = Field(
        default="off",
        pattern="^(off|on|early_drop)$",
        description="on a full queue: nothing, hold back modules before it, or drop at the input",
    )
    queue_pkts: Annotated[int, within(limits.TASK_QUEUE_PKTS)] = Field(
        default=0, description="size of each module's queue; 0: two batches"
    )
    high_watermark_percent: Annotated[int, within(limits.HIGH_WATERMARK_PERCENT)] = Field(
        default=80, description="fill level from which the modules before a queue wait"
    )
    low_watermark_percent: Annotated[int, within(limits.LOW_WATERMARK_PERCENT)] = Field(
        default=60, description="fill level at which they go on"
    )
    queueing_time_threshold_ns: Annotated[int, within(limits.QUEUEING_TIME_THRESHOLD_NS)] = Field(
        default=0,
        description="they wait only if the oldest packet has also been queued for this long",
    )
    input_weight: Annotated[int, within(limits.WEIGHT)] = Field(
        default=1, description="weight of polling the inputs"
    )

    @field_validator("backpressure", mode="before")
    @classmethod
    def _yaml_words(cls, value: object) -> object:
        """YAML reads on and off as booleans."""
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


class EngineModel(Strict):
    """Settings of the engine."""

    batch_pkts: Annotated[int, within(limits.BATCH_PKTS)] = Field(
        default=32, description="most packets in a batch"
    )
    pool_pkts: Annotated[int, within(limits.POOL_PKTS)] = Field(
        default=0, description="packets in the pool; 0: computed"
    )
    idle: str = Field(
        default="release",
        pattern="^(release|hold)$",
        description="while no packets arrive: release the packets in buffers, or hold them",
    )
    stranding_limit_ns: Annotated[int, within(limits.STRANDING_LIMIT_NS)] = Field(
        default=1_000_000_000, description="the longest that any buffer holds a packet"
    )
    sample_one_run_in: Annotated[int, within(limits.SAMPLE_ONE_RUN_IN)] = Field(
        default=256, description="one run in this many is timed"
    )
    run_order: str = Field(
        default="depth",
        pattern="^(depth|deadline)$",
        description="which batch runs first of those that are ready; deadline: simulator only",
    )
    heavy_ns: Annotated[int, within(limits.HEAVY_NS)] = Field(
        default=1000,
        description="with run order deadline: poll the input before a batch that takes this long",
    )
    seed: Annotated[int, within(limits.SEED)] = Field(
        default=1, description="seed of all random numbers"
    )
    execution: ExecutionModel | None = Field(default=None, description="how all tasks execute")

    @field_validator("execution", mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        return {"mode": value} if isinstance(value, str) else value


class WorkerModel(Strict):
    """A worker thread and its core."""

    name: Name
    core: Core | None = None
    shared: bool = Field(
        default=False,
        description="has no thread of its own: the other workers take turns running its tasks",
    )
    execution: ExecutionModel | None = Field(
        default=None, description="how its tasks execute, instead of as the engine's do"
    )

    @field_validator("execution", mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        return {"mode": value} if isinstance(value, str) else value


class PortModel(_WithParams):
    """Where packets enter and leave. Other keys are the port's parameters."""

    kind: str


class InterfaceModel(Strict):
    """A router's interface: a port with addresses."""

    name: Name
    port: str | None = None
    mac: str | None = Field(default=None, pattern="^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")
    mtu_bytes: Annotated[int, within(limits.MTU_BYTES)] = 1500
    addresses: list[str] = Field(default_factory=list)


class DeviceModel(_WithParams):
    """A device that runs batches. Other keys are its parameters."""

    kind: str


class InQueueModel(Strict):
    """The queue in front of a module that another worker feeds."""

    size_pkts: Annotated[int, Field(ge=1, le=1_048_576)] | None = Field(
        default=None, description="size for each worker that feeds it"
    )
    credit_pkts: Annotated[int, Field(ge=1, le=1_048_576)] | None = Field(
        default=None, description="how many of these packets may wait"
    )
    backpressure: bool | None = Field(
        default=None, description="when full: hold back the workers that feed it, or drop packets"
    )
    poll_pkts: Annotated[int, within(limits.POLL_PKTS)] | None = Field(
        default=None, description="most packets that a poll of it takes"
    )


class ModuleModel(_WithParams):
    """A module. Other keys are its parameters."""

    kind: str
    trigger_pkts: Annotated[int, within(limits.TRIGGER_PKTS)] = Field(
        default=0,
        description="packets that its buffer collects before it runs; 0: no buffer",
    )
    age_limit_ns: Annotated[int, within(limits.AGE_LIMIT_NS)] | None = Field(
        default=None, description="the longest that its buffer holds a packet"
    )
    worker: str | None = Field(
        default=None,
        description="the worker that polls this input, or runs this module and what only it feeds",
    )
    weight: Annotated[int, within(limits.WEIGHT)] | None = Field(
        default=None, description="weight of its share of the core, with execution wfq"
    )
    queue_pkts: Annotated[int, within(limits.QUEUE_PKTS)] | None = Field(
        default=None, description="size of its queue, with execution wfq"
    )
    poll_pkts: Annotated[int, within(limits.POLL_PKTS)] | None = Field(
        default=None,
        description="of an input or queue: most packets of a poll of its task; none: a batch",
    )
    device: DeviceUseModel | None = Field(
        default=None,
        description="devices that it runs on, if not on the worker that brings its packets",
    )

    in_queue: InQueueModel | None = Field(
        default=None, description="the queue in front of it, if another worker brings its packets"
    )

    @field_validator("device", mode="before")
    @classmethod
    def _on(cls, value: object) -> object:
        names = [value] if isinstance(value, str) else value
        return {"on": names} if isinstance(names, list) else value


class FlowModel(Strict):
    """A path through the graph, and its delay SLO."""

    name: Name
    path: list[str] = Field(min_length=1)
    delay_slo_ns: Annotated[int, within(limits.DELAY_SLO_NS)] | None = Field(
        default=None, description="the delay SLO of its packets"
    )


class GeneratorModel(_WithParams):
    """Generates traffic into a port. Other keys are its parameters."""

    name: Name
    port: str
    core: Core | None = None


# The strategy for moving parts between workers: a controller's only setting that is a word.
Decompose = Literal["off", "greedy", "normgreedy", "balance"]


class ControllerModel(Strict):
    """The controller that sets triggers and age limits from the start. A name alone is enough."""

    name: str = Field(description="optimal, full, max, null, fixed(k), ...; none: no controller")
    period_ns: Annotated[int, within(limits.PERIOD_NS)] = Field(
        default=10_000_000, description="time between two decisions"
    )
    settings: dict[str, int | float | Decompose] = Field(
        default_factory=dict, description="its settings, as in `set controller.NAME=VALUE`"
    )
    costs_file: str | None = Field(
        default=None, description="costs that it starts with: a file, or prior, epyc, paper, wide"
    )


class PipelineModel(Strict):
    """A whole pipeline after expansion."""

    name: str = Field(default="pipeline", max_length=64)
    engine: EngineModel = Field(default_factory=EngineModel)
    workers: list[WorkerModel] = Field(default_factory=list)
    ports: dict[Name, PortModel] = Field(default_factory=dict)
    devices: dict[Name, DeviceModel] = Field(default_factory=dict)
    interfaces: list[InterfaceModel] = Field(default_factory=list)
    modules: dict[Name, ModuleModel]
    connect: list[str] = Field(default_factory=list)
    flows: list[FlowModel] = Field(default_factory=list)
    generators: list[GeneratorModel] = Field(default_factory=list)
    controller: ControllerModel | None = None
    placement: PlacementModel | None = None

    @field_validator("placement", mode="before")
    @classmethod
    def _policy(cls, value: object) -> object:
        return {"policy": value} if isinstance(value, str) else value

    @field_validator("controller", mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value


# --- JSON schema for editors ---------------------------------------------------------------------

_TEMPLATE: dict[str, Any] = {"type": "string", "pattern": r"\$\{.*\}"}
_DURATION: dict[str, Any] = {"type": "string", "pattern": r"^[0-9.]+ *(ns|us|ms|s)$|\$\{"}
_JSON_TYPES = {
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "list": "array",
    "dict": "object",
}


def editor_schema(kinds: Kinds) -> dict[str, Any]:
    """JSON schema of the YAML file, with ${...}, repeat and each kind's parameters."""
    schema = PipelineModel.model_json_schema()
    definitions = schema["$defs"]
    for definition in [schema, *definitions.values()]:
        _allow_yaml_forms(definition)
    module = definitions["ModuleModel"]
    module["properties"]["trigger"] = module["properties"].pop("trigger_pkts")
    if kinds.modules:
        module["properties"]["kind"] = {"enum": sorted(kinds.modules)}
        module["allOf"] = [_kind_rule(kind) for _, kind in sorted(kinds.modules.items())]
    properties = schema["properties"]
    _allow_short(properties["placement"], {"type": "string"})
    names = {"type": "array", "items": {"type": "string"}}
    _allow_short(module["properties"]["device"], {"type": "string"}, names)
    properties["version"] = {"const": 1}
    properties["params"] = {
        "type": "object",
        "description": "overridden by NAME=VALUE on the command line",
    }
    for section in ("modules", "ports", "devices"):
        entry = properties[section].pop("additionalProperties", None)
        entry = entry or next(iter(properties[section].pop("patternProperties").values()))
        properties[section].pop("propertyNames", None)
        properties[section]["additionalProperties"] = entry
    repeatable = {
        name: properties[name]
        for name in ("modules", "connect", "flows", "ports", "interfaces", "generators", "workers")
    }
    definitions["Repeat"] = {
        "type": "object",
        "description": "its sections count times, with the loop variable in ${...}",
        "properties": {
            "as": {"type": "string"},
            "count": _or_template({"type": "integer"}),
            "repeat": {"type": "array", "items": {"$ref": "#/$defs/Repeat"}},
            **repeatable,
        },
        "required": ["as", "count"],
        "additionalProperties": False,
    }
    definitions["RepeatedItem"] = {
        "type": "object",
        "description": "its value count times in the list, with the loop variable in ${...}",
        "properties": {
            "repeat": {
                "type": "object",
                "properties": {
                    "as": {"type": "string"},
                    "count": _or_template({"type": "integer"}),
                },
                "required": ["as", "count"],
                "additionalProperties": False,
            },
            "value": {},
        },
        "required": ["repeat", "value"],
        "additionalProperties": False,
    }
    properties["repeat"] = {"type": "array", "items": {"$ref": "#/$defs/Repeat"}}
    schema["required"] = []
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Batchplane pipeline, version 1"
    return schema


def _or_template(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, _TEMPLATE]}


def _allow_short(rule: dict[str, Any], *forms: dict[str, Any]) -> None:
    """Allows these short forms in addition to a mapping."""
    rule["anyOf"] = [*rule["anyOf"], *forms]


def _allow_yaml_forms(definition: dict[str, Any]) -> None:
    properties = definition.get("properties", {})
    for name, rule in list(properties.items()):
        if name.endswith("_ns"):
            stem = {"description": rule.get("description", ""), **_DURATION}
            properties[name.removesuffix("_ns")] = stem
        if rule.get("type") == "array" and "items" in rule:
            rule["items"] = {"anyOf": [rule["items"], {"$ref": "#/$defs/RepeatedItem"}]}
        if rule.get("type") in ("integer", "number", "boolean"):
            properties[name] = {"description": rule.get("description", ""), **_or_template(rule)}
        plain = ("integer", "number", "boolean")
        if any(
            option.get("type") in plain or "pattern" in option for option in rule.get("anyOf", [])
        ):
            rule["anyOf"].append(_TEMPLATE)
        rule.pop("pattern", None) if rule.get("type") == "string" and name != "idle" else None
    if "required" in definition:
        definition["required"] = [name for name in definition["required"] if name in properties]


def _kind_rule(kind: ModuleKind) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for param in kind.params.values():
        properties[param.name] = _param_rule(param)
        if param.name.endswith("_ns"):
            properties[param.name.removesuffix("_ns")] = {"description": param.help, **_DURATION}
    reserved = dict.fromkeys(
        (
            *("kind", "trigger", "trigger_pkts", "age_limit", "age_limit_ns", "worker"),
            *("weight", "queue_pkts", "poll_pkts", "device", "in_queue"),
        ),
        True,
    )
    return {
        "if": {"properties": {"kind": {"const": kind.kind}}, "required": ["kind"]},
        "then": {
            "description": kind.help,
            "properties": {**reserved, **properties},
            "additionalProperties": False,
        },
    }


def _param_rule(param: ParamSpec) -> dict[str, Any]:
    rule: dict[str, Any] = {"type": _JSON_TYPES.get(param.type, "string")}
    if param.choices:
        rule["enum"] = list(param.choices)
    if param.type in ("int", "float"):
        if param.min > -1e18:
            rule["minimum"] = param.min
        if param.max < 1e18:
            rule["maximum"] = param.max
    described = {"description": f"{param.help}{f' [{param.unit}]' if param.unit else ''}"}
    if param.default is not None:
        described["default"] = param.default
    return {**described, **_or_template(rule)}
