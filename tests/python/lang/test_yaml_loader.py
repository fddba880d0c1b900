# SPDX-License-Identifier: BSD-3-Clause
"""test_yaml_loader.py - lines, types, templates in flow style, and invalid YAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchplane.base.problems import BadInput
from batchplane.lang.yaml_loader import ListNode, MapNode, ScalarNode, load_yaml, resolve_plain


def leaf(tree: MapNode, *path: str | int) -> ScalarNode:
    node: object = tree
    for part in path:
        if isinstance(node, MapNode):
            node = next(value for key, value in node.items if key.value == part)
        else:
            assert isinstance(node, ListNode) and isinstance(part, int)
            node = node.items[part]
    assert isinstance(node, ScalarNode)
    return node


def test_every_value_knows_its_line() -> None:
    tree = load_yaml("a: 1\nb:\n  - x\n  - {c: 3,\n     d: 4}\n", "f")
    assert [leaf(tree, "a").line, leaf(tree, "b", 0).line] == [1, 3]
    assert [leaf(tree, "b", 1, "c").line, leaf(tree, "b", 1, "d").line] == [4, 5]


def test_templates_stand_in_flow_style_and_keys() -> None:
    tree = load_yaml(
        "a: {x: ${n}, y: [a_${i}, '${m % 2}/24']}  # ${comment}\nt_${i}: ${ip(1.2.3.4, i)}\n", "f"
    )
    assert leaf(tree, "a", "x") == ScalarNode("${n}", 1, is_template=True)
    assert leaf(tree, "a", "y", 0).value == "a_${i}"
    assert leaf(tree, "a", "y", 1).value == "${m % 2}/24"
    assert leaf(tree, "t_${i}").value == "${ip(1.2.3.4, i)}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:34:56:11:22:33", "12:34:56:11:22:33"),
        ("on", "on"),
        ("no", "no"),
        ("0800", 800),
        ("0x800", 2048),
        ("1.5", 1.5),
        ("1e6", 1e6),
        ("-3", -3),
        ("~", None),
        ("", None),
        ("true", True),
        ("10.0.0.1", "10.0.0.1"),
        ("5us", "5us"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
    ],
)
def test_plain_types(text: str, value: object) -> None:
    result = resolve_plain(text)
    assert result == value and type(result) is type(value)


def test_quotes_keep_text() -> None:
    assert leaf(load_yaml("a: '12'\n", "f"), "a").value == "12"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n", "f:2: 'a' is given twice (first in line 1; remove one)"),
        ("a: [1, 2\nb: 3\n", "f:2: this is not YAML"),
        ("a: b: c\n", "f:1: this is not YAML: mapping values are not allowed"),
        ("a:\n\t- b\n", "f:2: this is not YAML"),
        ("", "f: the file is empty"),
        ("- a\n", "f:1: a pipeline is a mapping"),
        ("a: 1\nb: ${n\n", "f:2: '${' is not closed"),
        ("a: &x [1]\nb: *y\n", "f:2: this is not YAML: found undefined alias"),
        ("a: &x [*x]\n", "f:1: the file nests too deeply"),
        ("? [1]\n: 2\n", "f:1: a key must be a word"),
        ("a: \x07\n", "f: this is not YAML"),
    ],
)
def test_mistakes_name_their_line(text: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_yaml(text, "f")
    assert caught.value.lines()[0].startswith(line)


def test_aliases_cannot_explode() -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]\n" for i in range(1, 10))
    with pytest.raises(BadInput, match="grow without end"):
        load_yaml("l0: &l0 [x]\n" + levels, "f")


@given(st.text(alphabet="ab:-[]{}$#\n '\"&*!|>%@,?~0", max_size=60))
def test_any_text_is_a_tree_or_bad_input(text: str) -> None:
    try:
        assert isinstance(load_yaml(text, "f"), MapNode)
    except BadInput as error:
        assert all(line.startswith("f") for line in error.lines())
