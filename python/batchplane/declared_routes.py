# SPDX-License-Identifier: BSD-3-Clause
"""declared_routes.py - routes from declared flows alone, where there is no program to ask."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .canonical import Document, parse_hop
from .problems import BadInput, Problem

_BLIND_MODES = ("round_robin", "random", "weighted")


def traffic_flow_names(document: Document) -> dict[str, list[str]]:
    """The names of the traffic flows of each generator and inline source, in order."""
    names = {}
    for generator in document.pipeline.get("generators", []):
        names[str(generator["name"])] = _expanded(generator.get("params", {}))
    for name, module in document.pipeline.get("modules", {}).items():
        if module["kind"] == "source":
            names[name] = _expanded(module.get("params", {}))
    return names


def _expanded(params: dict[str, Any]) -> list[str]:
    """As the generator itself names them: NAME, NAME_0 .. with a count, or `flow N`."""
    names: list[str] = []
    for flow in params.get("flows") or [{}]:
        name, count = flow.get("name", ""), int(flow.get("count", 1))
        for i in range(count):
            if not name:
                names.append(f"flow {len(names)}")
            else:
                names.append(name if count == 1 else f"{name}_{i}")
    return names


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

    def gates(self, source: str, name: str, flow: str | None = None) -> dict[str, int | str]:
        """The gates of traffic flow `name`: of declared flow `flow`, or of the one of its name."""
        flow = flow if flow is not None else name
        if flow in self._flows:
            return self._of_path(self._flows[flow])
        if self._is_blind(source):
            return {}
        raise BadInput(
            Problem(
                f"it is not known which way flow '{name}' of generator '{source}' takes",
                self._document.file,
                fix="build the daemon's program (make build), or name the declared flow that it "
                "follows: `flow: NAME` in the traffic file",
            )
        )

    def _of_path(self, index: int) -> dict[str, int | str]:
        flow = self._document.pipeline["flows"][index]
        key = f"flows[{index}].path"
        hops = []
        for text in flow["path"]:
            hop = parse_hop(str(text))
            if hop is None or hop[0] not in self._modules:
                raise BadInput(
                    self._document.problem(key, f"'{text}' in the path is no module", "correct it")
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
        """The direct edges to `target`, else the ways there; drop gates only where named."""
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
        """Whether the gate is a choice: of several, or a drop; and not one made at random."""
        if edge["gate"] == "drop":
            return True
        others = [other for other in self._edges[edge["from"]] if other["gate"] != "drop"]
        has_choice = len(others) > 1 or edge["gate"] != 0
        return has_choice and not self._is_blind_module(edge["from"])

    def _is_blind_module(self, name: str) -> bool:
        module = self._modules[name]
        mode = module.get("params", {}).get("mode", "round_robin")
        return module["kind"] == "split" and mode in _BLIND_MODES

    def _is_blind(self, source: str) -> bool:
        """True when no module that looks at packets chooses among gates behind `source`."""
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
