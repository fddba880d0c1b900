# SPDX-License-Identifier: BSD-3-Clause
"""canonical.py - turns expanded data into canonical JSON, with the position of every key."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..base.measured_devices import like_measured, measured_names
from ..base.problems import BadInput, Problem, suggestion
from ..base.units import parse_duration_ns
from .device_schema import PlacementModel
from .expand import LISTS, MAPS, Expanded, Path, dotted
from .kinds import Kinds
from .schema import (
    ControllerModel,
    DeviceModel,
    EngineModel,
    FlowModel,
    GeneratorModel,
    InterfaceModel,
    ModuleModel,
    PortModel,
    WorkerModel,
)

VERSION = 1
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_HOP = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?::([A-Za-z_]\w*|\d{1,6}))?")
_BY_NAME = re.compile(r"(?:generators|simulation\.traffic)\.([^.\[\]]+)(?:\.(.+))?")
_TOP_KEYS = (
    *("name", "version", "params", "engine", "controller", "placement", "repeat"),
    *MAPS,
    *LISTS,
)
_DURATION_KEYS = ("age_limit", "delay_slo", "stranding_limit", "queueing_time_threshold")

M = TypeVar("M", bound=BaseModel)


@dataclass
class Document:
    """A canonical pipeline and the mistakes found while building it."""

    pipeline: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)
    broken_modules: set[str] = field(default_factory=set)  # written in the file, but unusable
    file: str = ""
    params: dict[str, Any] = field(default_factory=dict)

    def where(self, key: str) -> str:
        """file:line of a dotted key or of its nearest parent."""
        places: dict[str, str] = self.pipeline.get("source_map", {})
        key = self._by_number(key)
        while key:
            if key in places:
                return places[key]
            # Each step shortens the key, so the loop ends even for made-up keys.
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self.file

    def _by_number(self, key: str) -> str:
        """Traffic errors name generators.load.x; the file has it at generators[0].params.x."""
        match = _BY_NAME.fullmatch(key)
        if match is None:
            return key
        rest = f".params.{match[2]}" if match[2] else ""
        for i, generator in enumerate(self.pipeline.get("generators", [])):
            if generator.get("name") == match[1]:
                return f"generators[{i}]{rest}"
        return f"modules.{match[1]}{rest}"  # an inline source

    def problem(self, key: str, message: str, fix: str = "", is_warning: bool = False) -> Problem:
        """A problem at a dotted canonical key, reported with the key as the user wrote it."""
        return Problem(message, self.where(key), user_key(key), fix, is_warning)


def user_key(key: str) -> str:
    """The key as written in a file: modules.ttl.x for modules.ttl.params.x, connect for edges."""
    key = re.sub(r"^edges\[\d+\](\.\w+)?$", "connect", key).replace(".params.", ".")
    return re.sub(r"^(modules\.[^.]+)\.trigger_pkts$", r"\1.trigger", key)


def canonicalise(expanded: Expanded, kinds: Kinds | None = None) -> Document:
    """Builds the canonical form; collects mistakes and keeps everything valid."""
    return _Canonicaliser(expanded, kinds or Kinds()).run()


def parse_hop(text: str) -> tuple[str, int | str | None] | None:
    """'lookup:3' -> ('lookup', 3); None if it is malformed."""
    match = _HOP.fullmatch(text.strip())
    if match is None:
        return None
    gate = match[2]
    return match[1], int(gate) if gate and gate.isdigit() else gate


class _Canonicaliser:
    def __init__(self, expanded: Expanded, kinds: Kinds):
        self._in = expanded
        self._kinds = kinds
        self._places: dict[str, str] = {}
        self._out: dict[str, Any] = {"version": VERSION}
        self._document = Document(
            self._out, list(expanded.problems), file=expanded.file, params=dict(expanded.params)
        )

    def run(self) -> Document:
        data = self._in.data
        for key in data:
            if key not in _TOP_KEYS:
                self._problem((key,), f"unknown key '{key}'", suggestion(key, _TOP_KEYS))
        if data.get("version", VERSION) != VERSION:
            self._problem(
                ("version",), f"version {data['version']} is not known", f"version: {VERSION}"
            )
        name = data.get("name")
        self._out["name"] = name if isinstance(name, str) and name else _stem(self._in.file)
        if name is not None and not isinstance(name, str):
            self._problem(("name",), f"a name is text, not {name!r}")
        for section in (*MAPS, *LISTS):
            self._place(section, (section,))
        self._engine()
        self._controller()
        self._placement()
        self._with_kind("ports", PortModel)
        self._with_kind("devices", DeviceModel)
        self._like_measured()
        self._modules()
        self._list("workers", WorkerModel)
        self._list("interfaces", InterfaceModel)
        self._generators()
        self._edges()
        self._list("flows", FlowModel)
        self._out["source_map"] = dict(sorted(self._places.items()))
        return self._document

    # --- sections -------------------------------------------------------------------------------

    def _engine(self) -> None:
        if self._in.data.get("engine") is None:
            return
        model = self._validated(EngineModel, self._in.data["engine"], ("engine",))
        if model is not None:
            self._out["engine"] = model.model_dump(exclude_unset=True, exclude_none=True)
            for key in self._out["engine"]:
                self._place(f"engine.{key}", ("engine", key))

    def _controller(self) -> None:
        given = self._in.data.get("controller")
        if given is None:
            return
        path: Path = ("controller",)
        self._place("controller", path)
        if isinstance(given, str):
            given = {"name": given}
        model = self._validated(ControllerModel, given, path)
        if model is None:
            return
        if model.name.partition(":")[0].endswith(".py"):
            message = f"'{model.name}' runs in its own process"
            self._problem(path, message, f"leave it out, and run with --controller {model.name}")
            return
        self._out["controller"] = model.model_dump(exclude_unset=True, exclude_none=True)
        for key in self._out["controller"]:
            self._place(f"controller.{key}", (*path, key))

    def _placement(self) -> None:
        given = self._in.data.get("placement")
        if given in (None, ""):
            return
        path: Path = ("placement",)
        self._place("placement", path)
        if isinstance(given, str):
            given = {"policy": given}
        model = self._validated(PlacementModel, given, path)
        if model is not None:
            self._out["placement"] = model.model_dump(exclude_unset=True, exclude_none=True)

    def _with_kind(self, section: str, model_type: type[PortModel] | type[DeviceModel]) -> None:
        for name, entry in self._named(section):
            model = self._validated(model_type, entry, (section, name))
            if model is not None:
                self._out.setdefault(section, {})[name] = {
                    "kind": model.kind,
                    "params": model.params(),
                }
                self._place_params(section, name, model.params())

    def _modules(self) -> None:
        modules = self._out["modules"] = {}
        if not self._in.data.get("modules"):
            self._problem(("modules",), "there are no modules", "add modules:")
        for name, entry in self._named("modules"):
            model = self._validated(ModuleModel, entry, ("modules", name))
            if model is None:
                self._document.broken_modules.add(name)
                continue
            modules[name] = module_json(
                model.kind, model.params(), model.trigger_pkts, model.age_limit_ns, model.worker
            )
            for key in ("weight", "queue_pkts", "poll_pkts"):
                value = getattr(model, key)
                if value is not None:
                    modules[name][key] = value
            if model.device is not None:
                modules[name]["device"] = model.device.model_dump(exclude_none=True)
            if model.in_queue is not None:
                modules[name]["in_queue"] = model.in_queue.model_dump(exclude_none=True)
            self._place_params("modules", name, model.params())

    def _like_measured(self) -> None:
        """Replaces `like` of simulated devices by the times and watts of a measured one; their own
        values win."""
        for name, device in self._out.get("devices", {}).items():
            params = device.get("params", {})
            if device["kind"] != "simulated" or "like" not in params:
                continue
            try:
                device["params"] = like_measured(params)
            except BadInput as error:
                problem = error.problems[0]
                self._problem(("devices", name, "like"), problem.message, problem.fix)
                # So that other mistakes are reported too.
                device["params"] = like_measured({**params, "like": measured_names()[0]})

    def _list(self, section: str, model_type: type[BaseModel]) -> None:
        for i, entry in enumerate(self._in.data.get(section) or []):
            model = self._validated(model_type, entry, (section, i))
            if model is not None:
                target = self._out.setdefault(section, [])
                self._place(f"{section}[{len(target)}]", (section, i))
                target.append(model.model_dump(exclude_none=True, exclude_unset=True))

    def _generators(self) -> None:
        for i, entry in enumerate(self._in.data.get("generators") or []):
            model = self._validated(GeneratorModel, entry, ("generators", i))
            if model is None:
                continue
            target = self._out.setdefault("generators", [])
            self._place(f"generators[{len(target)}]", ("generators", i))
            for key in model.params():
                self._place(f"generators[{len(target)}].params.{key}", ("generators", i, key))
            known = {"name": model.name, "port": model.port}
            core = {} if model.core is None else {"core": model.core}
            target.append({**known, **core, "params": model.params()})

    def _edges(self) -> None:
        edges = self._out["edges"] = []
        for i, chain in enumerate(self._in.data.get("connect") or []):
            path: Path = ("connect", i)
            if not isinstance(chain, str):
                self._problem(path, "an element of connect is text such as 'a -> b:1 -> c'")
                continue
            hops = [parse_hop(part) for part in chain.split("->")]
            if len(hops) < 2 or any(hop is None for hop in hops):
                self._problem(
                    path, f"'{chain}' is not a chain", "write a -> b, or a:1 -> b for gate 1 of a"
                )
                continue
            sound = [hop for hop in hops if hop is not None]
            if sound[-1][1] is not None:
                self._problem(
                    path,
                    f"the last module of '{chain}' has a gate",
                    "a gate says where a packet leaves: a:1 -> b",
                )
            for (source, gate), (target, _) in itertools.pairwise(sound):
                self._place(f"edges[{len(edges)}]", path)
                edges.append({"from": source, "gate": 0 if gate is None else gate, "to": target})

    # --- tools ----------------------------------------------------------------------------------

    def _named(self, section: str) -> list[tuple[str, Any]]:
        found = []
        for name, entry in (self._in.data.get(section) or {}).items():
            if not _NAME.fullmatch(name):
                self._problem(
                    (section, name),
                    f"'{name}' is not a name",
                    "letters, digits, _ and -, at most 64, no digit first",
                )
                continue
            self._place(f"{section}.{name}", (section, name))
            found.append((name, entry))
        return found

    def _validated(self, model_type: type[M], entry: Any, path: Path) -> M | None:
        """The entry as a model. A wrong optional key is reported and left out."""
        if not isinstance(entry, dict):
            self._problem(
                path,
                f"expected a mapping, found {_told(entry)}",
                "for example {kind: ttl}" if path[0] == "modules" else "",
            )
            return None
        entry = self._normalised(entry, path)
        for _ in range(3):
            try:
                return model_type.model_validate(entry)
            except ValidationError as error:
                for mistake in error.errors(include_url=False):
                    key = str(mistake["loc"][0]) if mistake["loc"] else ""
                    self._note(model_type, mistake, path)
                    entry.pop(key, None)
                required = {n for n, f in model_type.model_fields.items() if f.is_required()}
                if required - set(entry):
                    return None
        return None

    def _note(self, model_type: type[BaseModel], mistake: Any, path: Path) -> None:
        where: Path = (*path, *mistake["loc"])
        key = mistake["loc"][-1] if mistake["loc"] else ""
        if mistake["type"] == "missing":
            self._problem(path, f"'{key}' is missing", _MISSING.get(str(key), f"add {key}: ..."))
        elif mistake["type"] == "extra_forbidden":
            names = [_short(name) for name in model_type.model_fields]
            self._problem(where, f"unknown key '{key}'", suggestion(str(key), names))
        else:
            self._problem(where, in_words(mistake))

    def _normalised(self, entry: dict[str, Any], path: Path) -> dict[str, Any]:
        """Turns durations with a unit into x_ns, and trigger into trigger_pkts."""
        kind = self._kinds.modules.get(str(entry.get("kind"))) if path[0] == "modules" else None
        result: dict[str, Any] = {}
        for key, value in entry.items():
            name, plain = self._normal_key(key, value, path, set(kind.params) if kind else set())
            if name in result:
                self._problem((*path, key), f"'{key}' and '{name}' are the same", "remove one")
            result[name] = plain
            if name != key and (*path, key) in self._in.lines:
                self._in.lines[(*path, name)] = self._in.lines[(*path, key)]
        return result

    def _normal_key(self, key: str, value: Any, path: Path, params: set[str]) -> tuple[str, Any]:
        if key == "trigger" and path[0] == "modules":
            return "trigger_pkts", value
        if isinstance(value, (dict, list)):
            return key, _nested_durations(value)
        duration_ns = parse_duration_ns(value)
        is_plain_number = isinstance(value, int) and not isinstance(value, bool)
        is_period = path[0] in ("controller", "placement") and key == "period"
        if is_plain_number and (
            key in _DURATION_KEYS or is_period or (f"{key}_ns" in params and key not in params)
        ):
            self._problem((*path, key), f"'{key}' needs a unit", f"for example {key}: {value}us")
            return f"{key}_ns", value
        if duration_ns is None or (key in params and not key.endswith("_ns")):
            return key, value
        return (key if key.endswith("_ns") else f"{key}_ns"), duration_ns

    def _place(self, key: str, path: Path) -> None:
        if path in self._in.lines:
            self._places[key] = f"{self._in.file}:{self._in.lines[path]}"

    def _place_params(self, section: str, name: str, params: dict[str, Any]) -> None:
        for key in params:
            self._place(f"{section}.{name}.params.{key}", (section, name, key))
        for key in _OWN_KEYS:
            if section == "modules":
                self._place(f"{section}.{name}.{key}", (section, name, key))

    def _problem(self, path: Path, message: str, fix: str = "") -> None:
        key = user_key(dotted(path))
        self._document.problems.append(Problem(message, self._in.where(path), key, fix))


def module_json(
    kind: str,
    params: dict[str, Any],
    trigger_pkts: int,
    age_limit_ns: int | None,
    worker: str | None,
) -> dict[str, Any]:
    """A module of the canonical form, without default values."""
    module: dict[str, Any] = {"kind": kind, "params": params}
    if trigger_pkts:
        module["trigger_pkts"] = trigger_pkts
    if age_limit_ns is not None:
        module["age_limit_ns"] = age_limit_ns
    if worker is not None:
        module["worker"] = worker
    return module


_OWN_KEYS = (
    *("kind", "trigger_pkts", "age_limit_ns", "worker", "weight", "queue_pkts"),
    *("poll_pkts", "device", "in_queue"),
)
_MISSING = {
    "kind": "add kind: ...; `batchplane modules` lists them",
    "name": "add name: ...",
    "port": "add port: NAME of a port",
    "path": "add path: [in, ..., out]",
}


def _nested_durations(value: Any) -> Any:
    if isinstance(value, list):
        return [_nested_durations(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, item in value.items():
        duration_ns = parse_duration_ns(item)
        if duration_ns is None:
            result[key] = _nested_durations(item)
        else:
            result[key if key.endswith("_ns") else f"{key}_ns"] = duration_ns
    return result


def _short(name: str) -> str:
    stem = name.removesuffix("_ns")
    return stem if stem in _DURATION_KEYS else "trigger" if name == "trigger_pkts" else name


def _stem(file: str) -> str:
    return file.rsplit("/", 1)[-1].rsplit(".", 1)[0] or "pipeline"


def _told(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    return f"'{value}'"


def in_words(mistake: Any) -> str:
    """A pydantic error in plain words."""
    kind, value, context = mistake["type"], _told(mistake["input"]), mistake.get("ctx", {})
    expected = {
        "int_type": "an integer",
        "string_type": "text",
        "list_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping",
        "bool_type": "true or false",
        "float_type": "a number",
        "float_parsing": "a number",
    }
    if kind in expected:
        return f"expected {expected[kind]}, found {value}"
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return f"{mistake['input']} is out of range: {bound}"
    if kind == "string_pattern_mismatch":
        return f"{value} does not fit here: {_PATTERNS.get(context['pattern'], context['pattern'])}"
    if kind == "too_short":
        return "the list is empty"
    return f"{mistake['msg'][:1].lower()}{mistake['msg'][1:]}, found {value}"


_PATTERNS = {
    "^(release|hold)$": "release or hold",
    "^(run_to_completion|wfq)$": "run_to_completion or wfq",
    "^(cycles|count)$": "cycles or count",
    "^(off|on|early_drop)$": "off, on or early_drop",
    "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$": "a MAC address such as 02:00:00:00:00:01",
    "^[A-Za-z_][A-Za-z0-9_-]*$": "a name has letters, digits, _ and -",
}
