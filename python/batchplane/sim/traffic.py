# SPDX-License-Identifier: BSD-3-Clause
"""traffic.py - traffic for a simulation, from the pipeline's generators or from a file.

A traffic file has the section `generators:` of a pipeline file; an entry with the name of one of
the pipeline's generators changes it, another one needs a port. `trace: FILE` replays a capture. A
capture given directly replaces the traffic of the only generator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, suggestion
from ..lang.canonical import Document, canonicalise
from ..lang.expand import Expanded, expand
from ..lang.kinds import Kinds
from ..lang.yaml_loader import load_yaml

TRACE_SUFFIXES = (".pcap", ".pcapng")
RING = "ring"  # the kind of port that generators fill
_RX_SLOTS = 512  # of ports of the kernel, by default


@dataclass(frozen=True)
class Traffic:
    """The content of a traffic file, in canonical form."""

    file: str
    generators: list[dict[str, Any]] = field(default_factory=list)  # with params
    traces: dict[str, Path] = field(default_factory=dict)  # by generator
    places: dict[str, str] = field(default_factory=dict)  # file:line of generators[0].params.x

    def sources_of_flows(self) -> list[str]:
        """The generators whose traffic flows are in the file."""
        return [entry["name"] for entry in self.generators if "flows" in entry["params"]]


def load_traffic(path: Path, pipeline: dict[str, Any], kinds: Kinds | None = None) -> Traffic:
    """Reads a traffic file, or takes a capture. Raises BadInput."""
    if not path.is_file():
        raise BadInput(Problem("there is no such file", str(path)))
    if path.suffix in TRACE_SUFFIXES:
        names = [entry["name"] for entry in pipeline.get("generators", [])]
        if len(names) == 1:
            return Traffic(str(path), traces={names[0]: path})
        which = f"{len(names)} generators" if names else "no generator"
        raise BadInput(
            Problem(
                f"the pipeline has {which}, so it is unclear which one the capture replaces",
                str(path),
                fix="--traffic FILE.yaml with generators: [{name: ..., trace: FILE.pcap}]",
            )
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(Problem(f"cannot be read: {error}", str(path))) from error
    return parse_traffic(text, str(path), pipeline, kinds)


def parse_traffic(
    text: str, file: str, pipeline: dict[str, Any], kinds: Kinds | None = None
) -> Traffic:
    """The traffic in `text`. Raises BadInput with file:line of every mistake."""
    expanded = expand(load_yaml(text, file, "a traffic file", "generators"), file)
    problems = list(expanded.problems)
    for key in expanded.data:
        if key not in ("generators", "name"):
            message = f"a traffic file has generators: only, not '{key}'"
            problems.append(Problem(message, expanded.where((key,)), key))
    entries = expanded.data.get("generators") or []
    if not entries:
        problems.append(Problem("there are no generators", file, fix="generators: [{name: load}]"))
    traces: dict[str, Path] = {}
    known = {entry["name"]: entry for entry in pipeline.get("generators", [])}
    for i, entry in enumerate(entries):
        if isinstance(entry, dict):
            _complete(entry, known, expanded, i, traces, problems)
    if problems:
        raise BadInput(problems)
    only = Expanded(file, {"modules": {}, "generators": entries}, expanded.lines)
    document = canonicalise(only, kinds)
    wrong = [problem for problem in document.problems if problem.key != "modules"]
    if wrong:
        raise BadInput(wrong)
    places = {
        key: place
        for key, place in document.pipeline["source_map"].items()
        if key.startswith("generators[")
    }
    return Traffic(file, document.pipeline.get("generators", []), traces, places)


def _complete(
    entry: dict[str, Any],
    known: dict[str, dict[str, Any]],
    expanded: Expanded,
    i: int,
    traces: dict[str, Path],
    problems: list[Problem],
) -> None:
    """Adds the port of a generator that the pipeline has; takes the trace out."""
    name = entry.get("name")
    if not isinstance(name, str):
        return  # rejected as a part of the pipeline
    where = expanded.where(("generators", i))
    if name in known:
        entry.setdefault("port", known[name]["port"])
    elif "port" not in entry:
        fix = suggestion(str(name), known, "a new generator needs a port")
        message = f"the pipeline has no generator '{name}'"
        problems.append(Problem(message, where, f"generators[{i}].name", fix))
    trace = entry.pop("trace", None)
    if trace is None:
        return
    path = Path(expanded.file).parent / str(trace)
    if not path.is_file():
        place = expanded.where(("generators", i, "trace"))
        problems.append(Problem(f"there is no file '{path}'", place, f"generators[{i}].trace"))
    traces[str(name)] = path


def ring_of(size_pkts: int) -> dict[str, Any]:
    """A port in place of a real one."""
    return {"kind": RING, "params": {"size_pkts": size_pkts}}


def with_traffic(document: Document, traffic: Traffic) -> Document:
    """The pipeline with the file's generators, changed by name or added, and the file's lines.

    A real port that a generator stands for becomes a ring as large as what it may hold."""
    pipeline = dict(document.pipeline)
    ports = pipeline["ports"] = dict(pipeline.get("ports", {}))
    for entry in traffic.generators:
        port = ports.get(entry["port"])
        if port is not None and port["kind"] != RING:
            slots = port.get("params", {}).get("rx_slots", _RX_SLOTS)
            ports[entry["port"]] = ring_of(slots)
    generators = [dict(entry) for entry in pipeline.get("generators", [])]
    index = {entry["name"]: i for i, entry in enumerate(generators)}
    places = dict(pipeline.get("source_map", {}))
    for i, entry in enumerate(traffic.generators):
        at = index.get(entry["name"])
        if at is None:
            at = len(generators)
            generators.append(entry)
        else:
            mine = generators[at]
            mine["params"] = {**mine.get("params", {}), **entry["params"]}
            mine["port"] = entry["port"]
        given = f"generators[{i}]"
        for key, place in traffic.places.items():
            if key == given or key.startswith(given + "."):
                places[f"generators[{at}]{key.removeprefix(given)}"] = place
    pipeline["generators"] = generators
    pipeline["source_map"] = places
    return Document(
        pipeline,
        document.problems,
        document.broken_modules,
        document.file,
        document.params,
    )
