# SPDX-License-Identifier: BSD-3-Clause
"""pipeline.py - builds a pipeline in Python: `>>` joins modules, `a[3]` is gate 3 of a.

p = Pipeline("demo")
source, sink = p.module("in", "source"), p.module("out", "sink")
ttl = p.module("ttl", "ttl", trigger=8)
source >> ttl >> sink
p.flow("all", [source, ttl, sink], delay_slo="1ms")
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.measured_devices import like_measured
from ..base.problems import BadInput, Problem
from ..base.units import parse_duration_ns
from .canonical import VERSION, module_json
from .device_schema import DeviceUseModel
from .schema import InQueueModel

Duration = str | int | None  # '50us', or nanoseconds


@dataclass(frozen=True)
class Module:
    """A module of a pipeline, created by Pipeline.module."""

    name: str
    kind: str
    pipeline: Pipeline = field(repr=False, compare=False)

    def __getitem__(self, gate: int | str) -> Gate:
        return Gate(self, gate)

    def __rshift__(self, target: Module | Gate) -> Module | Gate:
        return Gate(self, 0) >> target


@dataclass(frozen=True)
class Gate:
    """Gate `gate` of a module: `lookup[3] >> ttl`."""

    module: Module
    gate: int | str

    def __rshift__(self, target: Module | Gate) -> Module | Gate:
        self.module.pipeline.connect(self, target)
        return target


@dataclass(frozen=True)
class Options:
    """Settings of the engine; None = its default."""

    batch_pkts: int | None = None
    pool_pkts: int | None = None
    idle: str | None = None
    stranding_limit: Duration = None
    sample_one_run_in: int | None = None
    seed: int | None = None
    run_order: str | None = None
    heavy_ns: int | None = None
    execution: str | dict[str, Any] | None = None  # "wfq", or a dictionary with `mode`

    def to_json(self) -> dict[str, Any]:
        """Only the settings that were given."""
        known = {
            "batch_pkts": self.batch_pkts,
            "pool_pkts": self.pool_pkts,
            "idle": self.idle,
            "stranding_limit_ns": _ns(self.stranding_limit),
            "sample_one_run_in": self.sample_one_run_in,
            "seed": self.seed,
            "run_order": self.run_order,
            "heavy_ns": self.heavy_ns,
            "execution": {"mode": how} if isinstance(how := self.execution, str) else how,
        }
        return {key: value for key, value in known.items() if value is not None}


class Pipeline:
    """Collects modules, edges, flows, ports and generators, and returns the canonical JSON."""

    def __init__(self, name: str, options: Options | None = None):
        self.name = name
        self.options = options or Options()
        self._modules: dict[str, dict[str, Any]] = {}
        self._ports: dict[str, dict[str, Any]] = {}
        self._devices: dict[str, dict[str, Any]] = {}
        self._lists: dict[str, list[dict[str, Any]]] = {
            "workers": [],
            "interfaces": [],
            "edges": [],
            "flows": [],
            "generators": [],
        }
        self._controller: dict[str, Any] = {}
        self._places: dict[str, str] = {}

    def module(
        self,
        name: str,
        kind: str,
        *,
        trigger: int = 0,
        age_limit: Duration = None,
        worker: str | None = None,
        weight: int | None = None,
        queue_pkts: int | None = None,
        poll_pkts: int | None = None,
        device: str | list[str] | dict[str, Any] | None = None,
        in_queue: dict[str, Any] | None = None,
        **params: Any,
    ) -> Module:
        """Adds a module. `trigger` is in packets, `age_limit` '50us' or ns; then come its
        parameters.

        `weight` and `queue_pkts` make it a unit if execution is wfq. `device`: where it runs, as
        names or as a dictionary with `on`, `batch_pkts` and so on. `worker`: for an input, the
        worker that polls it; for another module, the worker that runs it and the modules that only
        it feeds. `in_queue` describes the queue that then leads to it. `poll_pkts`: of an input or
        queue, the most packets of a poll of its task.
        """
        self._take_name("modules", name, self._modules)
        plain = dict(_param(key, value) for key, value in params.items())
        self._modules[name] = module_json(kind, plain, trigger, _ns(age_limit), worker)
        own = {"weight": weight, "queue_pkts": queue_pkts, "poll_pkts": poll_pkts}
        self._modules[name] |= {key: value for key, value in own.items() if value is not None}
        if device is not None:
            use = DeviceUseModel.model_validate(
                {"on": [device] if isinstance(device, str) else device}
                if not isinstance(device, dict)
                else dict(_param(key, value) for key, value in device.items())
            )
            self._modules[name]["device"] = use.model_dump(exclude_none=True)
        if in_queue is not None:
            queue = InQueueModel.model_validate(in_queue)
            self._modules[name]["in_queue"] = queue.model_dump(exclude_none=True)
        for key in plain:
            self._place(f"modules.{name}.params.{key}")
        return Module(name, kind, self)

    def port(self, name: str, kind: str, **params: Any) -> str:
        """Adds a port and returns its name."""
        return self._with_kind("ports", self._ports, name, kind, params)

    def device(self, name: str, kind: str, **params: Any) -> str:
        """Adds a device that modules can run on, and returns its name."""
        if kind == "simulated" and "like" in params:
            params = like_measured(params)
        return self._with_kind("devices", self._devices, name, kind, params)

    def _with_kind(
        self,
        section: str,
        entries: dict[str, dict[str, Any]],
        name: str,
        kind: str,
        params: dict[str, Any],
    ) -> str:
        self._take_name(section, name, entries)
        plain = dict(_param(key, value) for key, value in params.items())
        entries[name] = {"kind": kind, "params": plain}
        return name

    def interface(
        self,
        name: str,
        port: str,
        *,
        mac: str | None = None,
        mtu_bytes: int | None = None,
        addresses: Sequence[str] = (),
    ) -> str:
        """Adds a router's interface on a port and returns its name."""
        entry: dict[str, Any] = {
            "name": name,
            "port": port,
            "mac": mac,
            "mtu_bytes": mtu_bytes,
            "addresses": list(addresses) or None,
        }
        self._append(
            "interfaces", {key: value for key, value in entry.items() if value is not None}
        )
        return name

    def worker(self, name: str, core: int | None = None, *, shared: bool = False) -> str:
        """Adds a worker thread, on the given core if any, and returns its name.

        A shared worker has no thread: the others run its tasks in turns.
        """
        entry: dict[str, Any] = {"name": name}
        if core is not None:
            entry["core"] = core
        if shared:
            entry["shared"] = True
        self._append("workers", entry)
        return name

    def generator(self, name: str, port: str, *, core: int | None = None, **params: Any) -> str:
        """Adds a generator that sends into a port, and returns its name."""
        entry: dict[str, Any] = {"name": name, "port": port}
        if core is not None:
            entry["core"] = core
        entry["params"] = dict(_param(key, value) for key, value in params.items())
        self._append("generators", entry)
        return name

    def connect(self, source: Module | Gate, target: Module | Gate) -> None:
        """The same as `source >> target`."""
        leaving = source if isinstance(source, Gate) else Gate(source, 0)
        entered = target.module if isinstance(target, Gate) else target
        self._append(
            "edges", {"from": leaving.module.name, "gate": leaving.gate, "to": entered.name}
        )

    def controller(
        self,
        name: str,
        *,
        period: Duration = None,
        costs_file: str | None = None,
        **settings: float,
    ) -> None:
        """Sets the controller of triggers and age limits from the start."""
        self._place("controller")
        known = {
            "period_ns": _ns(period),
            "settings": settings or None,
            "costs_file": costs_file,
        }
        self._controller = {
            "name": name,
            **{key: value for key, value in known.items() if value is not None},
        }

    def flow(
        self, name: str, path: Sequence[Module | Gate | str], *, delay_slo: Duration = None
    ) -> None:
        """Declares a path and, with `delay_slo`, its delay SLO."""
        entry: dict[str, Any] = {"name": name, "path": [_hop(step) for step in path]}
        if delay_slo is not None:
            entry["delay_slo_ns"] = _ns(delay_slo)
        self._append("flows", entry)

    def to_json(self) -> dict[str, Any]:
        """The canonical JSON, with the Python lines as its source positions."""
        result: dict[str, Any] = {"version": VERSION, "name": self.name}
        engine = self.options.to_json()
        if engine:
            result["engine"] = engine
        if self._controller:
            result["controller"] = self._controller
        if self._ports:
            result["ports"] = self._ports
        if self._devices:
            result["devices"] = self._devices
        result["modules"] = self._modules
        for section, entries in self._lists.items():
            if entries or section == "edges":
                result[section] = entries
        result["source_map"] = dict(sorted(self._places.items()))
        return result

    def _append(self, section: str, entry: dict[str, Any]) -> None:
        self._place(f"{section}[{len(self._lists[section])}]")
        self._lists[section].append(entry)

    def _take_name(self, section: str, name: str, taken: dict[str, Any]) -> None:
        if name in taken:
            raise BadInput(
                Problem(
                    f"'{name}' exists already",
                    _caller(),
                    f"{section}.{name}",
                    f"first at {self._places[f'{section}.{name}']}; choose another name",
                )
            )
        self._place(f"{section}.{name}")

    def _place(self, key: str) -> None:
        self._places[key] = _caller()


def _caller() -> str:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _ns(duration: Duration) -> int | None:
    if duration is None or isinstance(duration, int):
        return duration
    ns = parse_duration_ns(duration)
    if ns is None:
        raise BadInput(
            Problem(f"'{duration}' is not a duration", _caller(), fix="for example '50us'")
        )
    return ns


def _param(key: str, value: Any) -> tuple[str, Any]:
    duration_ns = parse_duration_ns(value)
    if duration_ns is None:
        return key, value
    return (key if key.endswith("_ns") else f"{key}_ns"), duration_ns


def _hop(step: Module | Gate | str) -> str:
    if isinstance(step, Gate):
        return f"{step.module.name}:{step.gate}"
    return step if isinstance(step, str) else step.name


__all__ = ["Gate", "Module", "Options", "Pipeline"]
