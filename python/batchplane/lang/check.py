# SPDX-License-Identifier: BSD-3-Clause
"""check.py - reports every mistake of a pipeline at once, in file order; the daemon has the
rules."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, RunFailed
from .canonical import Document, user_key


def in_file_order(problems: list[Problem]) -> list[Problem]:
    """Sorts errors by line, then warnings; folds repeated ones as _folded() does."""

    def key(problem: Problem) -> tuple[bool, str, int]:
        file, _, line = problem.where.rpartition(":")
        return (
            (problem.is_warning, file, int(line)) if line.isdigit() else (problem.is_warning, "", 0)
        )

    return sorted(_folded(problems), key=key)


def _folded(problems: list[Problem]) -> list[Problem]:
    """Reports a mistake once, with its count, if `repeat` produces it many times."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for problem in dict.fromkeys(problems):
        text = [re.sub(r"\d+", "#", part) for part in (problem.key, problem.message, problem.fix)]
        groups.setdefault((problem.where, *text), []).append(problem)
    return [
        first
        if not more
        else replace(first, message=f"{first.message}, and {len(more)} more alike")
        for first, *more in groups.values()
    ]


def daemon_check(document: Document, daemon: Path) -> tuple[list[Problem], dict[str, Any]]:
    """The errors of `batchplaned --check` (pool size, tables, addresses), and its plan."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(document.pipeline, file)
    try:
        done = subprocess.run(
            [daemon, "--check", file.name], capture_output=True, text=True, timeout=60
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise RunFailed(
            f"{daemon} --check failed: {error}", "build it again: make build"
        ) from error
    finally:
        Path(file.name).unlink()
    found = [daemon_problem(error, document) for error in answer.get("errors", [])]
    for warning in answer.get("warnings", []):
        found.append(replace(daemon_problem(warning, document), is_warning=True))
    return found, answer.get("plan") or {}


def daemon_problem(error: dict[str, Any], document: Document | None = None) -> Problem:
    """An error of the daemon as a Problem; its `where` is like 'modules.ttl (x.yaml:12)'."""
    where = str(error.get("where", ""))
    match = re.fullmatch(r"(.*?)\s*\((.+:\d+)\)(.*)", where)
    key, place = (match[1] + match[3], match[2]) if match else (where, "")
    if not place and document is not None:
        place = document.where(key)
    return Problem(
        str(error.get("message", "unknown error")),
        place,
        user_key(key),
        str(error.get("fix", "")),
    )


def check_all(document: Document, daemon: Path) -> tuple[list[Problem], dict[str, Any]]:
    """Mistakes from reading the file and from the daemon, and the daemon's plan."""
    if document.broken_modules or not document.pipeline.get("modules"):
        return in_file_order(document.problems), {}  # further errors would only follow from these
    found, plan = daemon_check(document, daemon)
    return in_file_order(document.problems + found), plan


def raise_errors(problems: list[Problem]) -> None:
    """Raises BadInput if there are errors; warnings pass."""
    errors = [problem for problem in problems if not problem.is_warning]
    if errors:
        raise BadInput(errors)
