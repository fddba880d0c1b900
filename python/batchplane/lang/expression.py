# SPDX-License-Identifier: BSD-3-Clause
"""expression.py - the small language inside ${...}: integers, names, + - * // %, ip() and mac().

sum     := product (("+" | "-") product)*
product := signed (("*" | "//" | "%") signed)*
signed  := "-" signed | atom
atom    := integer | address | 'text' | name | name "(" sum ("," sum)* ")" | "(" sum ")"
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping

from ..base.problems import suggestion

Scalar = int | str | float | bool | None

MAX_DEPTH = 40
MAX_ABS = 1 << 63
_MAC = r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}"
_TOKEN = re.compile(
    rf"\s*(?:(?P<mac>{_MAC})(?!\w)|(?P<ip>\d+\.\d+\.\d+\.\d+)|(?P<int>0x[0-9A-Fa-f]+|\d+)(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)|'(?P<text>[^']*)'|(?P<op>//|[-+*%(),]))"
)


class ExpressionError(ValueError):
    """A mistake in an expression; `fix` says how to correct it."""

    def __init__(self, message: str, fix: str = ""):
        super().__init__(message)
        self.fix = fix


def evaluate(text: str, names: Mapping[str, Scalar]) -> Scalar:
    """Evaluates the expression, with `names` as its variables."""
    parser = _Parser(text, names)
    value = parser.sum(0)
    if parser.kind:
        raise ExpressionError(f"'{parser.token}' is not expected in '{text.strip()}'", _GRAMMAR)
    return value


_GRAMMAR = "use names, integers, + - * // %, parentheses, ip(base, i), mac(base, i)"


class _Parser:
    def __init__(self, text: str, names: Mapping[str, Scalar]):
        self._text = text
        self._names = names
        self._at = 0
        self.kind = ""
        self.token = ""
        self._advance()

    def _advance(self) -> None:
        if not self._text[self._at :].strip():
            self.kind = self.token = ""
            return
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            rest = self._text[self._at :].strip()
            raise ExpressionError(f"'{rest}' cannot be read in '{self._text.strip()}'", _GRAMMAR)
        self.kind, self.token = match.lastgroup, match[match.lastgroup]
        self._at = match.end()

    def _take(self, *operators: str) -> str:
        if self.kind != "op" or self.token not in operators:
            return ""
        taken = self.token
        self._advance()
        return taken

    def sum(self, depth: int) -> Scalar:
        value = self._product(depth)
        while operator := self._take("+", "-"):
            value = _arithmetic(operator, value, self._product(depth))
        return value

    def _product(self, depth: int) -> Scalar:
        value = self._signed(depth)
        while operator := self._take("*", "//", "%"):
            value = _arithmetic(operator, value, self._signed(depth))
        return value

    def _signed(self, depth: int) -> Scalar:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"the expression is nested deeper than {MAX_DEPTH}")
        if self._take("-"):
            return _arithmetic("-", 0, self._signed(depth + 1))
        return self._atom(depth + 1)

    def _atom(self, depth: int) -> Scalar:
        kind, token = self.kind, self.token
        if not kind:
            raise ExpressionError(f"the expression '{self._text.strip()}' ends too early", _GRAMMAR)
        if self._take("("):
            value = self.sum(depth)
            self._close()
            return value
        if kind == "op":
            raise ExpressionError(f"'{token}' is not expected in '{self._text.strip()}'", _GRAMMAR)
        self._advance()
        if kind == "int":
            return _bounded(int(token, 0) if token.startswith("0x") else int(token))
        if kind != "name":
            return token
        return self._call(token, depth) if self._take("(") else self._variable(token)

    def _variable(self, name: str) -> Scalar:
        if name not in self._names:
            fix = suggestion(name, self._names, f"add it under params: {name}: ...")
            raise ExpressionError(f"unknown name '{name}'", fix)
        return self._names[name]

    def _call(self, name: str, depth: int) -> Scalar:
        function = _FUNCTIONS.get(name)
        if function is None:
            raise ExpressionError(f"unknown function '{name}'", suggestion(name, _FUNCTIONS))
        arguments = [self.sum(depth)]
        while self._take(","):
            arguments.append(self.sum(depth))
        self._close()
        if len(arguments) != 2:
            raise ExpressionError(f"{name}() takes two values: {name}(base, i)")
        return function(arguments[0], _integer(arguments[1]))

    def _close(self) -> None:
        if not self._take(")"):
            raise ExpressionError(f"a ')' is missing in '{self._text.strip()}'")


def _integer(value: Scalar) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExpressionError(f"'{value}' is not an integer", "arithmetic is on integers only")
    return value


def _bounded(value: int) -> int:
    if not -MAX_ABS <= value < MAX_ABS:
        raise ExpressionError("the value does not fit 64 bits")
    return value


def _arithmetic(operator: str, left: Scalar, right: Scalar) -> int:
    a, b = _integer(left), _integer(right)
    if operator in ("//", "%") and b == 0:
        raise ExpressionError("division by zero")
    if operator == "+":
        return _bounded(a + b)
    if operator == "-":
        return _bounded(a - b)
    if operator == "*":
        return _bounded(a * b)
    return a // b if operator == "//" else a % b


def ip(base: Scalar, i: int) -> str:
    """The IPv4 address `base` + i."""
    try:
        return str(ipaddress.IPv4Address(int(ipaddress.IPv4Address(str(base))) + i))
    except ValueError as error:
        raise ExpressionError(f"ip({base}, {i}) is not an IPv4 address") from error


def mac(base: Scalar, i: int) -> str:
    """The MAC address `base` + i."""
    if not re.fullmatch(_MAC, str(base)):
        raise ExpressionError(f"'{base}' is not a MAC address such as 02:00:00:00:00:01")
    number = int(str(base).replace(":", ""), 16) + i
    if not 0 <= number < 1 << 48:
        raise ExpressionError(f"mac({base}, {i}) is not a MAC address")
    digits = f"{number:012x}"
    return ":".join(digits[k : k + 2] for k in range(0, 12, 2))


_FUNCTIONS: dict[str, Callable[[Scalar, int], str]] = {"ip": ip, "mac": mac}
