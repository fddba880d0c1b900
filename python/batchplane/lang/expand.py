# SPDX-License-Identifier: BSD-3-Clause
"""expand.py - resolves params, ${expressions} and repeat; the result is plain data with lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.limits import EDGES, FLOWS, MODULES
from ..base.problems import BadInput, Problem, suggestion
from .expression import ExpressionError, Scalar, evaluate
from .yaml_loader import ListNode, MapNode, Node, ScalarNode, resolve_plain

Path = tuple[str | int, ...]

_TEMPLATE = re.compile(r"\$\{([^{}\n]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*")
MAPS = ("modules", "ports", "devices")
LISTS = ("connect", "flows", "interfaces", "workers", "generators")
MAX_VALUES = 1_000_000
MAX_PROBLEMS = 500
# Lists beyond these limits are not expanded: the daemon would reject them anyway.
_MOST = {"modules": MODULES.most, "connect": EDGES.most, "flows": FLOWS.most}

# A value that could not be evaluated; its error is already reported.
_BROKEN = object()


@dataclass
class Expanded:
    """Plain data, without ${} and repeat; `lines` maps each path to its line."""

    file: str
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    params: dict[str, Scalar] = field(default_factory=dict)

    def where(self, path: Path) -> str:
        """file:line of the path or of its nearest parent."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.file}:{self.lines[path]}" if path in self.lines else self.file


def expand(tree: MapNode, file: str, overrides: Mapping[str, str] | None = None) -> Expanded:
    """Expands a loaded file; the result contains the mistakes."""
    return _Expander(file, dict(overrides or {})).run(tree)


class _Expander:
    def __init__(self, file: str, overrides: dict[str, str]):
        self._out = Expanded(file)
        self._overrides = overrides
        self._count = 0

    def run(self, tree: MapNode) -> Expanded:
        entries = {str(key.value): (key, node) for key, node in tree.items}
        scope = self._params(entries.get("params"))
        for key, node in tree.items:
            if key.value != "params":
                self._section(key, node, scope, top=True)
        return self._out

    # --- params ---------------------------------------------------------------------------------

    def _params(self, entry: tuple[ScalarNode, Node] | None) -> dict[str, Scalar]:
        scope: dict[str, Scalar] = {}
        if entry is not None:
            node = entry[1]
            if not isinstance(node, MapNode):
                self._problem("params is a mapping of names to values", node.line, "params")
            else:
                for key, value_node in node.items:
                    self._param(key, value_node, scope)
        for name in self._overrides:
            if name not in scope:
                fix = suggestion(name, scope) if scope else "this pipeline has no params"
                self._out.problems.append(
                    Problem(f"unknown parameter '{name}'", "command line", name, fix)
                )
        self._out.params = dict(scope)
        return scope

    def _param(self, key: ScalarNode, node: Node, scope: dict[str, Scalar]) -> None:
        name = str(key.value)
        if not _NAME.fullmatch(name):
            self._problem(
                f"'{name}' is not a name for a param",
                key.line,
                f"params.{name}",
                "letters, digits and _",
            )
            return
        if not isinstance(node, ScalarNode):
            self._problem("a param is one value", key.line, f"params.{name}")
            return
        value = self._scalar(node, scope, ("params", name))
        if value is _BROKEN:
            return
        scope[name] = value
        if name in self._overrides:
            scope[name] = self._override(name, value)

    def _override(self, name: str, default: Scalar) -> Scalar:
        given = resolve_plain(self._overrides[name])
        if isinstance(default, str):
            return self._overrides[name]
        is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
        fits = (
            default is None
            or type(given) is type(default)
            or (isinstance(default, float) and is_number)
        )
        if not fits:
            wanted = {int: "an integer", bool: "true or false"}.get(type(default), "a number")
            self._out.problems.append(
                Problem(
                    f"'{self._overrides[name]}' is not {wanted}",
                    "command line",
                    name,
                    f"for example {name}={default}",
                )
            )
            return default
        return given

    # --- sections -------------------------------------------------------------------------------

    def _section(self, key: ScalarNode, node: Node, scope: dict[str, Scalar], top: bool) -> None:
        name = str(key.value)
        data = self._out.data
        if name == "repeat":
            self._repeat(node, scope)
        elif name in MAPS:
            data.setdefault(name, {})
            self._out.lines.setdefault((name,), key.line)
            if isinstance(node, MapNode):
                for entry_key, entry in node.items:
                    self._add_entry(name, entry_key, entry, scope)
            elif not _is_empty(node):
                self._problem(f"{name} is a mapping of names", node.line, name)
        elif name in LISTS:
            self._out.lines.setdefault((name,), key.line)
            target = data.setdefault(name, [])
            if isinstance(node, ListNode):
                self._extend(target, node, scope, (name,))
            elif not _is_empty(node):
                self._problem(f"{name} is a list", node.line, name, "start each element with '- '")
        elif top:
            value = self._value(node, scope, (name,), key.line)
            if value is not _BROKEN:
                data[name] = value
        else:
            allowed = ("as", "count", "repeat", *MAPS, *LISTS)
            self._problem(f"unknown key '{name}'", key.line, "repeat", suggestion(name, allowed))

    def _add_entry(
        self, section: str, key: ScalarNode, node: Node, scope: dict[str, Scalar]
    ) -> None:
        name = self._scalar(key, scope, (section,))
        if name is _BROKEN:
            return
        name = str(name)
        path: Path = (section, name)
        target = self._out.data[section]
        if name in target:
            self._problem(
                f"'{name}' exists already",
                key.line,
                f"{section}.{name}",
                f"first in line {self._out.lines[path]}; choose another name",
            )
            return
        value = self._value(node, scope, path, key.line)
        if value is not _BROKEN:
            target[name] = value
            self._refuse_more(section, len(target), key.line)

    def _refuse_more(self, section: str, count: int, line: int) -> None:
        most = _MOST.get(section, MAX_VALUES)
        if count > most:
            message = f"{section} are more than {most}"
            where = f"{self._out.file}:{line}"
            raise BadInput(Problem(message, where, section, "lower the counts of repeat"))

    def _extend(
        self, target: list[Any], node: ListNode, scope: dict[str, Scalar], path: Path
    ) -> None:
        for item in node.items:
            if _is_list_repeat(item):
                self._extend_repeated(target, item, scope, path)
                continue
            value = self._value(item, scope, (*path, len(target)), item.line)
            if value is not _BROKEN:
                target.append(value)
                if len(path) == 1:
                    self._refuse_more(str(path[0]), len(target), item.line)

    def _extend_repeated(
        self, target: list[Any], item: Node, scope: dict[str, Scalar], path: Path
    ) -> None:
        assert isinstance(item, MapNode)
        entries = {str(key.value): node for key, node in item.items}
        if set(entries) != {"repeat", "value"} or not isinstance(entries["repeat"], MapNode):
            self._problem(
                "a repeated element is {repeat: {as: i, count: N}, value: ...}",
                item.line,
                _dotted(path),
            )
            return
        for inner in self._loop(entries["repeat"], scope, extra_keys=False):
            one = ListNode((entries["value"],), item.line)
            self._extend(target, one, inner, path)

    # --- repeat ---------------------------------------------------------------------------------

    def _repeat(self, node: Node, scope: dict[str, Scalar]) -> None:
        if not isinstance(node, ListNode):
            self._problem("repeat is a list", node.line, "repeat", "write '- as: i' below it")
            return
        for item in node.items:
            if not isinstance(item, MapNode):
                self._problem(
                    "an element of repeat is a mapping",
                    item.line,
                    "repeat",
                    "as: i, count: N, and modules:, connect:, flows:",
                )
                continue
            for number, inner in enumerate(self._loop(item, scope, extra_keys=True)):
                for key, body in item.items:
                    if key.value not in ("as", "count"):
                        before = len(self._out.problems)
                        self._section(key, body, inner, top=False)
                        if number and len(self._out.problems) > before + 8:
                            return

    def _loop(
        self, node: MapNode, scope: dict[str, Scalar], extra_keys: bool
    ) -> list[dict[str, Scalar]]:
        entries = {str(key.value): value for key, value in node.items}
        for wanted in ("as", "count"):
            if wanted not in entries:
                self._problem(f"'{wanted}' is missing", node.line, "repeat", "as: i, count: N")
                return []
        if not extra_keys and len(entries) > 2:
            self._problem("repeat takes as and count", node.line, "repeat")
        name = entries["as"].value if isinstance(entries["as"], ScalarNode) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._problem(
                "'as' is the name of the loop variable", entries["as"].line, "repeat.as", "as: i"
            )
            return []
        if name in scope:
            self._problem(
                f"'{name}' is already a param or loop variable",
                entries["as"].line,
                "repeat.as",
                "choose another name",
            )
            return []
        count = self._value(entries["count"], scope, ("repeat", "count"), node.line)
        if count is _BROKEN:
            return []
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 1_000_000:
            self._problem(
                f"count is {count!r}",
                entries["count"].line,
                "repeat.count",
                "an integer from 0 to 1000000",
            )
            return []
        self._note_values(count, entries["count"].line)
        return [{**scope, name: i} for i in range(count)]

    # --- values ---------------------------------------------------------------------------------

    def _value(self, node: Node, scope: dict[str, Scalar], path: Path, line: int) -> Any:
        self._note_values(1, line)
        self._out.lines[path] = line
        if isinstance(node, ScalarNode):
            return self._scalar(node, scope, path)
        if isinstance(node, ListNode):
            items: list[Any] = []
            self._extend(items, node, scope, path)
            return items
        result: dict[str, Any] = {}
        for key, child in node.items:
            name = self._scalar(key, scope, path)
            if name is _BROKEN:
                continue
            if str(name) in result:
                self._problem(f"'{name}' is given twice", key.line, _dotted((*path, str(name))))
                continue
            value = self._value(child, scope, (*path, str(name)), key.line)
            if value is not _BROKEN:
                result[str(name)] = value
        return result

    def _note_values(self, count: int, line: int) -> None:
        """Counts iterations of a repeat too: an empty one could go on for ever."""
        self._count += count
        if self._count > MAX_VALUES:
            raise BadInput(
                Problem(
                    f"the pipeline expands to more than {MAX_VALUES} values",
                    f"{self._out.file}:{line}",
                    fix="lower the counts of repeat",
                )
            )

    def _scalar(self, node: ScalarNode, scope: dict[str, Scalar], path: Path) -> Any:
        if not node.is_template:
            return node.value
        text = str(node.value)
        try:
            whole = _TEMPLATE.fullmatch(text)
            if whole:
                return evaluate(whole[1], scope)
            return _TEMPLATE.sub(lambda match: _text(evaluate(match[1], scope)), text)
        except ExpressionError as error:
            self._problem(str(error), node.line, _dotted(path), error.fix)
            return _BROKEN

    def _problem(self, message: str, line: int, key: str, fix: str = "") -> None:
        problem = Problem(message, f"{self._out.file}:{line}", key, fix)
        if problem not in self._out.problems:
            self._out.problems.append(problem)
        if len(self._out.problems) > MAX_PROBLEMS:
            raise BadInput(self._out.problems)


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None


def _is_list_repeat(node: Node) -> bool:
    return isinstance(node, MapNode) and any(key.value == "repeat" for key, _ in node.items)


def _dotted(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


dotted = _dotted
