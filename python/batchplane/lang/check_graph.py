# SPDX-License-Identifier: BSD-3-Clause
"""check_graph.py - edges, gates, cycles, modules that nothing reaches, and the paths of flows."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

from ..base.problems import Problem, suggestion
from .canonical import Document, parse_hop
from .kinds import Kinds, ModuleKind

Edge = tuple[int, str, int | str, str]  # index, from, gate, to


def check_graph(document: Document, kinds: Kinds) -> list[Problem]:
    """Everything that can be wrong with how modules are joined."""
    return _Graph(document, kinds).check()


class _Graph:
    def __init__(self, document: Document, kinds: Kinds):
        self._document = document
        self._kinds = kinds
        self._modules: dict[str, Any] = document.pipeline.get("modules", {})
        self._problems: list[Problem] = []
        self._edges: list[Edge] = []
        self._next: dict[str, dict[int | str, str]] = defaultdict(dict)
        # An edge has a wrong end: what seems to be missing elsewhere follows from that.
        self._is_torn = bool(document.broken_modules)

    def check(self) -> list[Problem]:
        for i, edge in enumerate(self._document.pipeline.get("edges", [])):
            self._check_edge((i, edge["from"], edge["gate"], edge["to"]))
        if not self._is_torn:
            self._check_open_ends()
            self._check_reach()
        self._check_cycles()
        self._check_flows()
        return self._problems

    def _kind(self, name: str) -> ModuleKind | None:
        return (
            self._kinds.modules.get(self._modules[name]["kind"]) if name in self._modules else None
        )

    def _add(self, key: str, message: str, fix: str = "", is_warning: bool = False) -> None:
        self._problems.append(self._document.problem(key, message, fix, is_warning))

    def _check_edge(self, edge: Edge) -> None:
        i, source, gate, target = edge
        key = f"edges[{i}]"
        known = True
        for name in (source, target):
            if name in self._document.broken_modules:
                known = False
            elif name not in self._modules:
                known = False
                self._is_torn = True
                self._add(
                    key,
                    f"there is no module '{name}'",
                    suggestion(name, self._modules, "add it under modules:"),
                )
        taken = self._next[source].get(gate)
        if taken is not None:
            same = taken == target
            message = (
                f"'{source}' is joined to '{target}' twice"
                if same
                else (f"gate {gate} of '{source}' leads to both '{taken}' and '{target}'")
            )
            self._add(
                key, message, "remove one" if same else "a packet goes one way: use another gate"
            )
        elif known:
            self._check_shapes(key, source, gate, target)
            self._edges.append(edge)
        self._next[source].setdefault(gate, target)

    def _check_shapes(self, key: str, source: str, gate: int | str, target: str) -> None:
        kind, target_kind = self._kind(source), self._kind(target)
        if target_kind is not None and target_kind.shape == "input":
            self._add(key, f"'{target}' ({target_kind.kind}) is an input: nothing can lead to it")
        if kind is None or gate == "drop":
            return
        if kind.shape == "terminal":
            self._add(key, f"'{source}' ({kind.kind}) ends the path: nothing comes after it")
        elif isinstance(gate, str):
            if gate not in kind.gate_names:
                words = [*kind.gate_names, "drop"]
                self._add(
                    key, f"'{source}' ({kind.kind}) has no gate '{gate}'", suggestion(gate, words)
                )
        elif kind.shape != "splitter" and gate != 0 and gate >= len(kind.gate_names):
            self._add(
                key,
                f"'{source}' ({kind.kind}) has no gate {gate}",
                f"it has gate 0: {source} -> ...",
            )

    def _check_open_ends(self) -> None:
        for name in self._modules:
            kind = self._kind(name)
            if kind is None or kind.shape == "terminal":
                continue
            if not [gate for gate in self._next[name] if gate != "drop"]:
                self._add(
                    f"modules.{name}",
                    f"nothing comes after '{name}': its packets are dropped",
                    f"connect it: {name} -> ...",
                )

    def _check_cycles(self) -> None:
        """One message for each cycle found by a depth-first walk; queues begin a new task."""
        state: dict[str, int] = {}
        edges = {name: list(targets.values()) for name, targets in self._next.items()}
        for root in self._modules:
            if root in state:
                continue
            stack = [(root, iter(edges.get(root, [])))]
            state[root] = 1
            while stack:
                name, targets = stack[-1]
                target = next(targets, None)
                if target is None:
                    state[name] = 2
                    stack.pop()
                elif state.get(target) == 1 and not self._is_queue(target):
                    loop = [step for step, _ in stack]
                    self._tell_cycle([*loop[loop.index(target) :], target])
                elif target in self._modules and target not in state and not self._is_queue(target):
                    state[target] = 1
                    stack.append((target, iter(edges.get(target, []))))

    def _is_queue(self, name: str) -> bool:
        kind = self._kind(name)
        if kind is None:
            return name in self._modules and self._modules[name]["kind"] == "queue"
        return kind.shape == "queue"

    def _tell_cycle(self, loop: list[str]) -> None:
        index = next(
            (i for i, source, _, target in self._edges if (source, target) == (loop[-2], loop[-1])),
            0,
        )
        self._add(
            f"edges[{index}]",
            f"the graph has a cycle: {' -> '.join(loop)}",
            "tasks are acyclic; put a queue module into the loop",
        )

    def _check_reach(self) -> None:
        kinds = {name: self._kind(name) for name in self._modules}
        if not all(kinds.values()):
            return  # the shape of an unknown kind would be a guess
        inputs = [
            name for name, kind in kinds.items() if kind is not None and kind.shape == "input"
        ]
        if not inputs and self._modules:
            self._add("modules", "no module brings packets in", "add a port_in or source")
            return
        reached, todo = set(inputs), list(inputs)
        while todo:
            for target in self._next[todo.pop()].values():
                if target in self._modules and target not in reached:
                    reached.add(target)
                    todo.append(target)
        for name in self._modules:
            if name not in reached:
                self._add(
                    f"modules.{name}",
                    f"no packet can reach '{name}'",
                    f"connect something to it: ... -> {name}, or remove it",
                )

    # --- flows ----------------------------------------------------------------------------------

    def _check_flows(self) -> None:
        names: set[str] = set()
        paths: dict[tuple[str, ...], str] = {}
        for i, flow in enumerate(self._document.pipeline.get("flows", [])):
            key = f"flows[{i}]"
            if flow["name"] in names:
                self._add(key, f"the flow name '{flow['name']}' is used twice", "names are unique")
            elif flow["name"] == "other":
                self._add(
                    key,
                    "the name 'other' is taken by packets outside all flows",
                    "choose another name",
                )
            names.add(flow["name"])
            path = tuple(flow["path"])
            if path in paths:
                self._add(
                    key, f"flow '{flow['name']}' has the same path as '{paths[path]}'", "remove one"
                )
            paths.setdefault(path, flow["name"])
            self._check_path(key, flow)

    def _check_path(self, key: str, flow: dict[str, Any]) -> None:
        hops = [parse_hop(step) for step in flow["path"]]
        label = f"flow '{flow['name']}'"
        for step, hop in zip(flow["path"], hops, strict=True):
            if hop is None:
                self._add(
                    f"{key}.path", f"{label}: '{step}' is no step of a path", "NAME, or NAME:GATE"
                )
            elif hop[0] not in self._modules and hop[0] not in self._document.broken_modules:
                self._add(
                    f"{key}.path",
                    f"{label}: there is no module '{hop[0]}'",
                    suggestion(hop[0], self._modules),
                )
        sound = [hop for hop in hops if hop is not None and hop[0] in self._modules]
        if len(sound) != len(hops) or not sound:
            return
        first, last = self._kind(sound[0][0]), self._kind(sound[-1][0])
        if first is not None and not first.is_input:
            self._add(
                f"{key}.path",
                f"{label} begins at '{sound[0][0]}', which is no input",
                "begin at a port_in or source",
            )
        if last is not None and not last.is_egress:
            self._add(
                f"{key}.path",
                f"{label} ends at '{sound[-1][0]}', which is no egress",
                "end at a port_out or sink",
            )
        for (source, gate), (target, _) in itertools.pairwise(sound):
            self._check_step(f"{key}.path", label, source, gate, target)

    def _check_step(
        self, key: str, label: str, source: str, gate: int | str | None, target: str
    ) -> None:
        gates = [known for known, leads_to in self._next[source].items() if leads_to == target]
        if not gates and self._is_torn:
            return
        if not gates:
            ways = [to for to in self._next[source].values() if to in self._modules]
            self._add(
                key,
                f"{label}: '{source}' does not lead to '{target}'",
                suggestion(
                    target, ways, f"'{source}' leads to {', '.join(ways[:4])}" if ways else ""
                ),
            )
        elif gate is not None and gate not in gates:
            self._add(
                key,
                f"{label}: gate {gate} of '{source}' does not lead to '{target}'",
                f"write {source}:{gates[0]}",
            )
        elif gate is None and len(gates) > 1:
            self._add(
                key,
                f"{label}: several gates of '{source}' lead to '{target}'",
                f"say which: {source}:{gates[0]}",
            )
