# SPDX-License-Identifier: BSD-3-Clause
"""yaml_loader.py - turns YAML text into a tree in which every key and value knows its line."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import yaml

from ..base.problems import BadInput, Problem
from .expression import MAX_ABS
from .expression import Scalar as ScalarValue

# An ${expression} may stand inside {flow: style}, where braces have a meaning in YAML: private-use
# characters replace it while YAML parses the text.
_TEMPLATE = re.compile(r"\$\{([^{}\n]*)\}")
_HIDDEN = re.compile("\ue000(\\d+)\ue001")
MAX_NODES = 500_000
# libyaml's parser is ten times as fast, if PyYAML was built with it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class ScalarNode:
    """A leaf; `is_template` if it contains ${...}."""

    value: ScalarValue
    line: int
    is_template: bool = False


@dataclass(frozen=True)
class ListNode:
    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True)
class MapNode:
    """A mapping in file order; keys are unique as written."""

    items: tuple[tuple[ScalarNode, Node], ...]
    line: int


Node = ScalarNode | ListNode | MapNode


def load_yaml(text: str, file: str, what: str = "a pipeline", min_key: str = "modules") -> MapNode:
    """The file's top-level mapping. Raises BadInput with the line of each mistake."""
    if "\ue000" in text or "\ue001" in text:
        raise BadInput(Problem("the file holds characters of the private use area", file))
    templates: list[str] = []

    def hide(match: re.Match[str]) -> str:
        templates.append(match[0])
        return f"\ue000{len(templates) - 1}\ue001"

    hidden = _TEMPLATE.sub(hide, text)
    for number, line in enumerate(hidden.splitlines(), 1):
        if "${" in line.split("#")[0]:
            raise BadInput(
                Problem("'${' is not closed on its line", f"{file}:{number}", fix="add '}'")
            )
    try:
        root = yaml.compose(hidden, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        message = f"this is not YAML: {error.problem or error.context}"
        raise BadInput(
            Problem(_restore(message, templates), where, fix=_yaml_fix(message))
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        message = str(error).splitlines()[0] if str(error) else "nested too deeply"
        raise BadInput(Problem(f"this is not YAML: {message}", file)) from error
    if root is None:
        raise BadInput(Problem("the file is empty", file, fix=f"{what} needs at least {min_key}:"))
    tree = _Converter(file, templates).node(root, 0)
    if not isinstance(tree, MapNode):
        raise BadInput(Problem(f"{what} is a mapping", f"{file}:1", fix=f"start with {min_key}:"))
    return tree


def resolve_plain(text: str) -> ScalarValue:
    """The type of an unquoted scalar: YAML 1.2 rules, so that MAC addresses and `on` stay text."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if re.fullmatch(r"[-+]?\d{1,30}", text):
        return int(text)
    if re.fullmatch(r"0x[0-9A-Fa-f]{1,30}", text):
        return int(text, 16)
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d{1,3})?", text):
        return float(text)
    return text


def fits(value: ScalarValue) -> bool:
    """Whether readers of pipelines can represent the number; true for other values."""
    if isinstance(value, int):
        return -MAX_ABS <= value < MAX_ABS
    return not isinstance(value, float) or math.isfinite(value)


class _Converter:
    def __init__(self, file: str, templates: list[str]):
        self._file = file
        self._templates = templates
        self._count = 0

    def node(self, node: yaml.Node, depth: int) -> Node:
        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_NODES or depth > 60:
            raise BadInput(
                Problem(
                    "the file nests too deeply or its aliases grow without end",
                    f"{self._file}:{line}",
                )
            )
        if isinstance(node, yaml.SequenceNode):
            return ListNode(tuple(self.node(item, depth + 1) for item in node.value), line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, line, depth)
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, line: int, depth: int) -> MapNode:
        items: list[tuple[ScalarNode, Node]] = []
        first: dict[ScalarValue, int] = {}
        problems = []
        for key_node, value_node in node.value:
            key = self.node(key_node, depth + 1)
            where = f"{self._file}:{key.line}"
            if not isinstance(key, ScalarNode) or key.value is None:
                problems.append(Problem("a key must be a word", where))
            elif key.value in first:
                problems.append(
                    Problem(
                        f"'{key.value}' is given twice",
                        where,
                        fix=f"first in line {first[key.value]}; remove one",
                    )
                )
            else:
                first[key.value] = key.line
                items.append((key, self.node(value_node, depth + 1)))
        if problems:
            raise BadInput(problems)
        return MapNode(tuple(items), line)

    def _scalar(self, node: yaml.Node, line: int) -> ScalarNode:
        text = str(node.value)
        if _HIDDEN.search(text):
            return ScalarNode(_restore(text, self._templates), line, is_template=True)
        is_plain = isinstance(node, yaml.ScalarNode) and not node.style
        value = resolve_plain(text) if is_plain else text
        if not fits(value):
            message = f"the number {text[:40]} does not fit 64 bits"
            raise BadInput(Problem(message, f"{self._file}:{line}", fix="give a smaller one"))
        return ScalarNode(value, line)


def _restore(text: str, templates: list[str]) -> str:
    return _HIDDEN.sub(lambda match: templates[int(match[1])], text)


def _yaml_fix(message: str) -> str:
    if "mapping values are not allowed" in message:
        return "check the indentation, and put text with ': ' in quotes"
    if "could not find expected ':'" in message:
        return "a key needs ':' after it"
    if "'\\t'" in message:
        return "indent with spaces"
    return ""
