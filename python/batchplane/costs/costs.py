# SPDX-License-Identifier: BSD-3-Clause
"""costs.py - what each module of a pipeline costs, from a file that `batchplane profile` wrote.

costs = resolve(pipeline, load_costs("costs.json"))      # or load_costs("prior")
costs.modules["ttl_0_0"].at(32)                          # ns of a batch of 32 packets
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..base.json_file import read_json
from ..base.problems import BadInput, Problem
from .file import Entry, parse_document
from .keys import cpu_name, params_key
from .law import CostLaw

PRIOR = "prior"
PAPER = "paper"
WIDE = "wide"
EPYC = "epyc"
_PRIORS = Path(__file__).with_name("priors.json")
# Files with a name instead of a path: built-in estimates, the same of another machine, those for
# batches of up to 256 with cache effects, and the costs that the papers publish.
BUILT_IN = {
    PRIOR: _PRIORS,
    EPYC: Path(__file__).with_name("epyc.json"),
    WIDE: Path(__file__).with_name("wide.json"),
    PAPER: Path(__file__).with_name("paper.json"),
}

# How well an entry fits a module, best first.
EXACT = "the module itself"
SAME_PARAMS = "a module of the same kind and parameters"
SAME_NAME = "the module with other parameters"
SAME_KIND = "a module of the same kind"
COMPUTED = "its own parameters"
SAME_PORT = "ports of the same kind"

# Modules without a hop in front of them: the first one, and those that are an edge elsewhere.
_WITHOUT_HOP = ("port_in", "merge")
_PORT_MODULES = ("port_in", "port_out")
_RING = "ring"
IN_MEMORY = frozenset({_RING, "null"})  # kinds of ports


@dataclass(frozen=True)
class CostsFile:
    """A parsed costs file; `label` is measured, prior or given."""

    label: str
    entries: tuple[Entry, ...]
    loop: dict[str, float] = field(default_factory=dict)
    cycles_per_ns: float = 1.0
    cpu: str = ""
    date: str = ""
    file: str = ""
    hop: CostLaw | None = None  # what another engine spends on each batch in front of each module


@dataclass(frozen=True)
class Costs:
    """The costs of one pipeline: of each module, and of the engine around them (`loop`, in ns)."""

    modules: dict[str, CostLaw]
    sources: dict[str, str]  # by module: how well the entry fits it
    loop: dict[str, float]
    label: str
    cpu: str = ""
    date: str = ""
    warnings: tuple[Problem, ...] = ()
    ports: str = ""  # origin of the costs of ports that are not in memory
    in_queue: CostLaw | None = None  # of queues in front of parts that move to another worker

    def as_json(self) -> dict[str, Any]:
        """For the simulator's input and for reports."""
        return {
            "label": self.label,
            "cpu": self.cpu,
            "date": self.date,
            "modules": {
                name: {**law.as_json(), "source": self.sources[name]}
                for name, law in self.modules.items()
            },
            "loop": self.loop,
        }


# Key for the queues in front of parts that move, in costs by module.
ANY_IN_QUEUE = "/in"


def load_costs(name: str | Path) -> CostsFile:
    """Reads a costs file or a built-in one (`prior`, `epyc`, `wide`, `paper`). Raises BadInput."""
    path = BUILT_IN.get(str(name), Path(name))
    if not path.exists():
        raise BadInput(
            Problem("there is no such costs file", str(name), fix=_command("PIPELINE", str(name)))
        )
    document = read_json(path, "a costs file")
    return costs_from(document, str(name))


def costs_from(document: Any, file: str = "") -> CostsFile:
    """Parses the content of a costs file."""
    head, entries, problems = parse_document(document, file)
    if problems:
        raise BadInput(problems)
    # If a file leaves out the engine's own costs, the built-in ones apply.
    loop = head.loop or (load_costs(PRIOR).loop if Path(file) != _PRIORS else {})
    return CostsFile(
        head.label, tuple(entries), loop, head.cycles_per_ns, head.cpu, head.date, file, head.hop
    )


def _command(pipeline: str, out: str = "costs.json") -> str:
    return f"batchplane profile --pipeline {pipeline} --out {out}"


def resolve(pipeline: Mapping[str, Any], file: CostsFile, shown_as: str = "") -> Costs:
    """The cost of every module of a canonical pipeline. BadInput names modules without a cost.

    `shown_as` is the user's name for the pipeline, used in suggested commands.
    """
    name = shown_as or str(pipeline.get("name", "PIPELINE"))
    batch_pkts = int(pipeline.get("engine", {}).get("batch_pkts", 1))
    file = _reaching(file, batch_pkts)
    in_memory = tuple(entry for entry in file.entries if not entry.port_kind)
    by_name = {member: entry for entry in in_memory for member in entry.members}
    found: dict[str, tuple[CostLaw, str]] = {}
    problems: list[Problem] = []
    for module, spec in pipeline.get("modules", {}).items():
        kind = str(spec["kind"])
        cost = (
            _computed(spec.get("params", {}), file.cycles_per_ns)
            if kind == "cost"
            else _found(module, kind, spec.get("params", {}), by_name, in_memory)
        )
        if cost is None:
            problems.append(
                Problem(
                    f"there is no cost for module '{module}' (kind {kind})",
                    file.file,
                    f"modules.{module}",
                    _command(name),
                )
            )
        else:
            found[module] = cost
    if problems:
        raise BadInput(problems)
    on_ports, ports = _of_ports(pipeline, file, _reaching(_priors(), batch_pkts))
    found.update(on_ports)
    kinds = {module: str(spec["kind"]) for module, spec in pipeline.get("modules", {}).items()}
    laws = {module: _after_hop(law, kinds[module], file) for module, (law, _) in found.items()}
    sources = {module: source for module, (_, source) in found.items()}
    warnings = tuple(_warnings(file, sources, name))
    queue = _found("", "queue", {}, {}, in_memory)
    return Costs(
        laws, sources, dict(file.loop), file.label, file.cpu, file.date, warnings, ports,
        None if queue is None else _after_hop(queue[0], "queue", file),
    )  # fmt: skip


def _after_hop(law: CostLaw, kind: str, file: CostsFile) -> CostLaw:
    """The module's law with the hop in front of it, where the file has one."""
    return law if file.hop is None or kind in _WITHOUT_HOP else law.plus(file.hop)


def _reaching(file: CostsFile, batch_pkts: int) -> CostsFile:
    """Extends built-in tables to larger batches; measured ones must be for the pipeline's own."""
    if file.label != PRIOR:
        return file
    entries = (replace(entry, law=entry.law.reaching(batch_pkts)) for entry in file.entries)
    return replace(file, entries=tuple(entries))


def _of_ports(
    pipeline: Mapping[str, Any], file: CostsFile, priors: CostsFile
) -> tuple[dict[str, tuple[CostLaw, str]], str]:
    """The costs of modules whose port is not in memory, and their origin: the file or, unless its
    costs are given ones, the built-in costs. A port in neither costs what the file says of memory
    ports, and the origin says so."""
    files = (file,) if file.label == "given" else (file, priors)
    found: dict[str, tuple[CostLaw, str]] = {}
    told: dict[str, None] = {}
    for name, spec in pipeline.get("modules", {}).items():
        port = pipeline.get("ports", {}).get(spec.get("params", {}).get("port"), {})
        kind = str(port.get("kind", _RING))
        if spec["kind"] not in _PORT_MODULES or kind in IN_MEMORY:
            continue
        for costs in files:
            of_kind = [e for e in costs.entries if (e.kind, e.port_kind) == (spec["kind"], kind)]
            if of_kind:
                found[name] = (_middle(of_kind).law, SAME_PORT)
                told[f"{kind} {costs.label}"] = None
                break
        else:
            how = "as given" if file.label == "given" else "not known, so as rings in memory"
            told[f"{kind} {how}"] = None
    return found, "; ".join(told)


@lru_cache(maxsize=1)
def _priors() -> CostsFile:
    return load_costs(PRIOR)


def _computed(params: Mapping[str, Any], cycles_per_ns: float) -> tuple[CostLaw, str]:
    def ns(which: str) -> float:
        cycles = float(params.get(f"{which}_cycles") or 0)
        return float(params.get(f"{which}_ns") or 0) + cycles / cycles_per_ns

    return CostLaw(ns("cost_per_batch"), ns("cost_per_pkt")), COMPUTED


def _found(
    module: str,
    kind: str,
    params: Mapping[str, Any],
    by_name: Mapping[str, Entry],
    entries: tuple[Entry, ...],
) -> tuple[CostLaw, str] | None:
    key = params_key(kind, params)
    named = by_name.get(module)
    if named is not None and named.kind == kind and named.params_key in ("", key):
        return named.law, EXACT
    same = [entry for entry in entries if entry.params_key == key]
    if same:
        return _middle(same).law, SAME_PARAMS
    if named is not None and named.kind == kind:
        return named.law, SAME_NAME
    of_kind = [entry for entry in entries if entry.kind == kind]
    return (_middle(of_kind).law, SAME_KIND) if of_kind else None


def _middle(entries: list[Entry]) -> Entry:
    """The entry of median cost at full batches, to choose one of several."""
    ordered = sorted(entries, key=lambda e: (e.law.at(32), e.name))
    return ordered[len(ordered) // 2]


def _warnings(file: CostsFile, sources: Mapping[str, str], pipeline: str) -> list[Problem]:
    warnings = []
    if file.label == PRIOR:
        where = "" if file.cpu == cpu_name() else " on another machine"
        warnings.append(f"these are built-in costs, measured{where} with other tables")
    elif file.cpu and file.cpu != cpu_name():
        warnings.append(f"measured on another machine: {file.cpu}, this one is {cpu_name()}")
    guessed = [name for name, source in sources.items() if source in (SAME_NAME, SAME_KIND)]
    if guessed and file.label != PRIOR:
        shown = ", ".join(guessed[:4]) + (f" and {len(guessed) - 4} more" if guessed[4:] else "")
        warnings.append(
            f"the file has no cost for these parameters of {shown}: using those of others"
        )
    return [
        Problem(message, file.file, fix=_command(pipeline), is_warning=True) for message in warnings
    ]
