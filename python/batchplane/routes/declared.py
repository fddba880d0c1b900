# SPDX-License-Identifier: BSD-3-Clause
"""declared.py - routes from declared flows alone, without the daemon program."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ..base.problems import BadInput, Problem, suggestion
from ..lang.canonical import Document, parse_hop
from ..lang.expression import ExpressionError, evaluate
from .known import known_params

# In the `flow:` of an entry with a count: an expression of i, the index.
_OF_COUNT = re.compile(r"\{([^{}]*)\}")
_BLIND_MODES = ("round_robin", "random", "weighted")


def traffic_flow_names(document: Document) -> dict[str, list[str]]:
    """The names of the traffic flows of each generator and inline source, in order."""
    return {
        source: [name for name, _, _ in _expanded(params)]
        for source, _, params in _sources(document)
    }


def followed_flows(
    document: Document, sources: Iterable[str] | None = None
) -> dict[str, dict[str, str]]:
    """{generator: {traffic flow: declared flow}} for traffic flows whose `flow:` names one.

    Only for `sources`, if given. Raises BadInput for a `flow:` that names none.
    """
    declared = {str(flow["name"]) for flow in document.pipeline.get("flows", [])}
    followed: dict[str, dict[str, str]] = {}
    problems: dict[str, Problem] = {}  # by entry, the first
    for source, key, params in _sources(document):
        if sources is not None and source not in sources:
            continue
        for name, entry, i in _expanded(params):
            if not (text := entry.get("flow", "")):
                continue
            try:
                flow = _of_count(str(text), i)
            except ExpressionError as error:
                problem = document.problem(key, f"flow: '{text}': {error}", error.fix)
                problems.setdefault(f"{key} {text}", problem)
                continue
            followed.setdefault(source, {})[name] = flow
            if flow not in declared:
                fix = suggestion(flow, sorted(declared), "declare it under flows:")
                message = f"traffic flow '{name}' follows '{flow}', which is not a declared flow"
                problems.setdefault(f"{key} {text}", document.problem(key, message, fix))
    if problems:
        raise BadInput(list(problems.values()))
    return followed


def _of_count(text: str, i: int) -> str:
    """Evaluates 'flow_{i % 4}' for the traffic flow with index i of its entry."""
    return _OF_COUNT.sub(lambda match: str(evaluate(match[1], {"i": i})), text)


def _sources(document: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Generators and inline sources: name, key of their flows, parameters."""
    for g, generator in enumerate(document.pipeline.get("generators", [])):
        key = f"generators[{g}].params.flows"
        yield str(generator["name"]), key, generator.get("params", {})
    for name, module in document.pipeline.get("modules", {}).items():
        if module["kind"] == "source":
            yield name, f"modules.{name}.params.flows", module.get("params", {})


def _expanded(params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Each traffic flow's name as the generator makes it (NAME, NAME_0 .. with a count, or `flow
    N`), with its entry and its index there."""
    n_flows = 0
    for flow in params.get("flows") or [{}]:
        name, count = flow.get("name", ""), int(flow.get("count", 1))
        for i in range(count):
            if not name:
                yield f"flow {n_flows}", flow, i
            else:
                yield (name if count == 1 else f"{name}_{i}"), flow, i
            n_flows += 1


class DeclaredRoutes:
    """The gates on the paths of declared flows."""

    def __init__(self, document: Document):
        self._document = document
        pipeline = document.pipeline
        self._modules: dict[str, Any] = pipeline.get("modules", {})
        self._edges: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for edge in pipeline.get("edges", []):
            self._edges[edge["from"]].append(edge)
        self._flows = {str(flow["name"]): i for i, flow in enumerate(pipeline.get("flows", []))}
        self._known: dict[int, dict[str, int | str]] = {}  # by declared flow

    def gates(self, source: str, name: str, flow: str | None = None) -> dict[str, int | str]:
        """The gates of traffic flow `name`: those of declared flow `flow`, or of the one so
        named."""
        flow = flow if flow is not None else name
        if flow in self._flows:
            index = self._flows[flow]
            if index not in self._known:
                self._known[index] = self._of_path(index)
            return dict(self._known[index])
        if self.is_blind(source):
            return {}
        raise BadInput(
            Problem(
                f"the route of flow '{name}' of generator '{source}' is unknown",
                self._document.where(f"generators.{source}.flows"),
                fix="build the daemon (make build), or name the declared flow that it "
                f"follows: `flow: NAME` in the traffic file{self._variants()}",
            )
        )

    def _variants(self) -> str:
        """Suggests the parameters with which routes are known, if there are any."""
        known = known_params(str(self._document.pipeline.get("name", "")))
        return f"; without it, routes are known with {known}" if known else ""

    def _of_path(self, index: int) -> dict[str, int | str]:
        flow = self._document.pipeline["flows"][index]
        key = f"flows[{index}].path"
        hops = []
        for text in flow["path"]:
            hop = parse_hop(str(text))
            if hop is None or hop[0] not in self._modules:
                raise BadInput(
                    self._document.problem(
                        key, f"'{text}' in the path is not a module", "correct it"
                    )
                )
            hops.append(hop)
        gates: dict[str, int | str] = {}
        for (module, gate), (target, _) in itertools.pairwise(hops):
            ways = list(self._ways(module, gate, target))
            if len(ways) != 1:
                how = "more than one way leads" if ways else "no way leads"
                raise BadInput(
                    self._document.problem(
                        key, f"{how} from '{module}' to '{target}'", f"name the gate: {module}:GATE"
                    )
                )
            for edge in ways[0]:
                if self._decides(edge):
                    gates[edge["from"]] = edge["gate"]
        return gates

    def _ways(
        self, module: str, gate: int | str | None, target: str
    ) -> Iterator[list[dict[str, Any]]]:
        """The direct edges to `target`, else the paths there; drop gates only if named."""
        first = [
            edge
            for edge in self._edges[module]
            if (edge["gate"] == gate if gate is not None else edge["gate"] != "drop")
        ]
        direct = [edge for edge in first if edge["to"] == target]
        if direct:
            yield from ([edge] for edge in direct)
            return
        stack = [[edge] for edge in reversed(first)]
        while stack:
            way = stack.pop()
            at = way[-1]["to"]
            if at == target:
                yield way
                continue
            if any(edge["from"] == at for edge in way):
                continue
            stack += [[*way, edge] for edge in self._edges[at] if edge["gate"] != "drop"]

    def _decides(self, edge: dict[str, Any]) -> bool:
        """Whether the edge is a choice (one of several gates, or a drop) that is not random."""
        if edge["gate"] == "drop":
            return True
        others = [other for other in self._edges[edge["from"]] if other["gate"] != "drop"]
        has_choice = len(others) > 1 or edge["gate"] != 0
        return has_choice and not self._is_blind_module(edge["from"])

    def _is_blind_module(self, name: str) -> bool:
        module = self._modules[name]
        mode = module.get("params", {}).get("mode", "round_robin")
        return module["kind"] == "split" and mode in _BLIND_MODES

    def is_blind(self, source: str) -> bool:
        """True if no module behind `source` chooses gates by looking at packets."""
        ports = {g["name"]: g["port"] for g in self._document.pipeline.get("generators", [])}
        todo = [source] if source in self._modules else []
        for name, module in self._modules.items():
            if module["kind"] == "port_in" and module["params"].get("port") == ports.get(source):
                todo.append(name)
        seen = set(todo)
        while todo:
            at = todo.pop()
            for edge in self._edges[at]:
                if edge["gate"] != "drop" and self._decides(edge):
                    return False
                if edge["to"] not in seen:
                    seen.add(edge["to"])
                    todo.append(edge["to"])
        return bool(seen)
