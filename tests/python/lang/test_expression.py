# SPDX-License-Identifier: BSD-3-Clause
"""test_expression.py - the language inside ${...} compared with Python's own arithmetic."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchplane.lang.expression import ExpressionError, evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("2 * -3", -6),
        ("--3", 3),
        ("0x10 + 1", 17),
        ("n", 16),
        ("label", "lan"),
        ("n // 3 * 3 + n % 3", 16),
        ("ip(10.0.0.255, 1)", "10.0.1.0"),
        ("ip('10.0.0.1', n)", "10.0.0.17"),
        ("ip(base, 0 - 1)", "192.168.0.255"),
        ("mac(02:00:00:00:00:ff, 1)", "02:00:00:00:01:00"),
        ("flag", True),
    ],
)
def test_values(text: str, value: object) -> None:
    names = {"n": 16, "label": "lan", "base": "192.168.1.0", "flag": True}
    result = evaluate(text, names)
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("nexthop", "unknown name 'nexthop'", "did you mean 'nexthops'?"),
        ("zzzzzz", "unknown name 'zzzzzz'", "add it under params"),
        ("ipp(1, 2)", "unknown function 'ipp'", "did you mean 'ip'?"),
        ("1 +", "ends too early", "use names"),
        ("", "ends too early", "use names"),
        ("(1", "a ')' is missing", ""),
        ("1 2", "'2' is not expected", "use names"),
        ("1 / 2", "cannot be read", "use names"),
        ("__import__('os')", "unknown function '__import__'", ""),
        ("1 // 0", "division by zero", ""),
        ("label * 2", "'lan' is not an integer", "integers only"),
        ("flag + 1", "'True' is not an integer", "integers only"),
        ("ip(300.0.0.1, 1)", "is not an IPv4 address", ""),
        ("ip(255.255.255.255, 1)", "is not an IPv4 address", ""),
        ("mac(ff:ff:ff:ff:ff:ff, 1)", "is not a MAC address", ""),
        ("mac(12, 1)", "is not a MAC address", ""),
        ("ip(10.0.0.1)", "takes two values", ""),
        ("9223372036854775807 + 1", "does not fit 64 bits", ""),
        ("99999999999999999999", "does not fit 64 bits", ""),
        ("(" * 60 + "1" + ")" * 60, "nested deeper", ""),
        ("-" * 60 + "1", "nested deeper", ""),
    ],
)
def test_mistakes(text: str, message: str, fix: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, {"nexthops": 1, "label": "lan", "flag": True})
    assert message in str(caught.value) and fix in caught.value.fix


_LEAF = st.one_of(st.integers(0, 1000).map(str), st.sampled_from(["a", "b"]))
_EXPRESSIONS = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=8,
)


@given(_EXPRESSIONS, st.integers(-50, 50), st.integers(-50, 50))
def test_arithmetic_is_pythons(text: str, a: int, b: int) -> None:
    try:
        expected = eval(text, {"__builtins__": {}}, {"a": a, "b": b})
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="division by zero"):
            evaluate(text, {"a": a, "b": b})
        return
    if abs(expected) < 1 << 60:
        try:
            assert evaluate(text, {"a": a, "b": b}) == expected
        except ExpressionError as error:
            assert "64 bits" in str(error)  # an intermediate value was too large


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_mistake(text: str) -> None:
    try:
        value = evaluate(text, {"a": 1})
    except ExpressionError as error:
        assert str(error)
    else:
        assert isinstance(value, (int, str))


@given(st.integers(0, (1 << 32) - 1), st.integers(-(1 << 33), 1 << 33))
def test_ip_adds_or_refuses(base: int, step: int) -> None:
    text = f"ip({ipaddress.IPv4Address(base)}, {step})"
    if 0 <= base + step < 1 << 32:
        assert evaluate(text, {}) == str(ipaddress.IPv4Address(base + step))
    else:
        with pytest.raises(ExpressionError, match="not an IPv4 address"):
            evaluate(text, {})
