# SPDX-License-Identifier: BSD-3-Clause
"""problems.py - mistakes and failures in one line: where, which key, what, and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One mistake of the user, or (with is_warning) something that is probably a mistake."""

    message: str
    where: str = ""  # file:line
    key: str = ""  # dotted, as the user wrote it
    fix: str = ""
    is_warning: bool = False

    def line(self) -> str:
        parts = [part for part in (self.where, self.key) if part]
        text = ": ".join([*parts, self.message])
        if self.fix:
            text += f" ({self.fix})"
        return text

    def as_json(self) -> dict[str, str]:
        """For `--json`."""
        return {
            "where": self.where,
            "key": self.key,
            "message": self.message,
            "fix": self.fix,
            "severity": "warning" if self.is_warning else "error",
        }


class BatchplaneError(Exception):
    """Base of all errors that end in one line instead of a stack trace."""

    exit_code = 1

    def lines(self) -> list[str]:
        """The lines to print."""
        return [str(self)]


class BadInput(BatchplaneError):
    """The pipeline, a file or an argument is wrong; contains every mistake found."""

    exit_code = 2

    def __init__(self, problems: Problem | Iterable[Problem]):
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(self.lines()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the problems, so that they cross process boundaries intact."""
        return type(self), (self.problems,)

    def lines(self) -> list[str]:
        return [problem.line() for problem in self.problems]


class RunFailed(BatchplaneError):
    """Something failed at run time: the daemon died, did not answer, or refused."""

    def __init__(self, message: str, fix: str = ""):
        self.message = message
        self.fix = fix
        super().__init__(f"{message} ({fix})" if fix else message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.fix)


def edit_distance(a: str, b: str) -> int:
    """The number of single-letter edits from a to b; swapping two neighbours counts as one."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        current = [i]
        for j, other in enumerate(b, 1):
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        before, row = row, current
    return row[-1]


def nearest(word: str, allowed: Iterable[str]) -> str:
    """The allowed word that was probably meant, or an empty string."""
    best, best_distance = "", len(word) // 3 + 2
    for candidate in sorted(allowed):
        distance = edit_distance(word.lower(), candidate.lower())
        if len(word) >= 3 and (candidate.startswith(word) or word.startswith(candidate)):
            distance = min(distance, 1)
        if distance < best_distance:
            best, best_distance = candidate, distance
    return best


def suggestion(word: str, allowed: Iterable[str], otherwise: str = "") -> str:
    """The fix text: "did you mean 'x'?", or the given words, or the few that are allowed."""
    words = sorted(allowed)
    near = nearest(word, words)
    if near:
        return f"did you mean '{near}'?"
    if otherwise:
        return otherwise
    return f"one of: {', '.join(words)}" if 0 < len(words) <= 12 else ""
