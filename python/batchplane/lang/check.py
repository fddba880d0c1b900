# SPDX-License-Identifier: BSD-3-Clause
"""check.py - reports every mistake of a pipeline at once, in file order; the daemon has the
rules."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, RunFailed
from .canonical import Document, user_key

# Large route tables take a minute to build.
_TIMEOUT_S = 600


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


def ask_program(
    program: Path,
    option: str,
    pipeline: dict[str, Any],
    *more: str,
    frames: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """What the daemon program tells of a pipeline with `option`. Raises RunFailed."""
    with tempfile.TemporaryDirectory(prefix="batchplane-") as folder:
        file = Path(folder, "pipeline.json")
        file.write_text(json.dumps(pipeline))
        command = [str(program), option, str(file), *more]
        if frames:
            frames_file = Path(folder, "frames.json")
            frames_file.write_text(json.dumps({"frames": frames}))
            command += ["--frames", str(frames_file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise RunFailed(f"{program} {option} failed: {error}", "make build") from error
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
        raise RunFailed(
            f"{program} {option} ended with code {done.returncode}: {lines[-1]}",
            "daemon and command line may be of different versions: make build",
        ) from error
    return answer


def daemon_check(
    document: Document, daemon: Path, *more: str
) -> tuple[list[Problem], dict[str, Any]]:
    """The errors of `batchplaned --check` (pool size, tables, addresses), and all that it says."""
    answer = ask_program(daemon, "--check", document.pipeline, *more)
    found = [daemon_problem(error, document) for error in answer.get("errors", [])]
    for warning in answer.get("warnings", []):
        found.append(replace(daemon_problem(warning, document), is_warning=True))
    return found, answer


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


def check_all(document: Document, daemon: Path, *more: str) -> tuple[list[Problem], dict[str, Any]]:
    """Mistakes from reading the file and from the daemon, and what the daemon says; `more`: its
    options."""
    if document.broken_modules or not document.pipeline.get("modules"):
        return in_file_order(document.problems), {}  # further errors would only follow from these
    found, answer = daemon_check(document, daemon, *more)
    return in_file_order(document.problems + found), answer


def raise_errors(problems: list[Problem]) -> None:
    """Raises BadInput if there are errors; warnings pass."""
    errors = [problem for problem in problems if not problem.is_warning]
    if errors:
        raise BadInput(errors)
