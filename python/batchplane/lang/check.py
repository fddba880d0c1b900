# SPDX-License-Identifier: BSD-3-Clause
"""check.py - every mistake of a pipeline at once; what the daemon finds comes last."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, RunFailed, suggestion
from .canonical import Document, user_key
from .check_graph import check_graph
from .check_params import check_module, check_params
from .kinds import Kinds


def check_document(document: Document, kinds: Kinds) -> list[Problem]:
    """All problems that can be seen without the daemon, in the order of the file."""
    problems = list(document.problems)
    modules: dict[str, Any] = document.pipeline.get("modules", {})
    for name, module in modules.items():
        if kinds.modules:
            problems += check_module(document, name, module, kinds)
    problems += _check_ports(document, kinds)
    problems += _check_workers(document, kinds)
    problems += check_graph(document, kinds)
    return _in_file_order(problems)


def _check_ports(document: Document, kinds: Kinds) -> list[Problem]:
    pipeline, problems = document.pipeline, []
    ports: dict[str, Any] = pipeline.get("ports", {})
    for name, port in ports.items():
        kind = kinds.ports.get(port["kind"])
        if kind is not None:
            problems += check_params(document, f"ports.{name}", port["params"], kind)
        elif kinds.ports:
            message = f"unknown kind '{port['kind']}' of port"
            fix = suggestion(port["kind"], kinds.ports)
            problems.append(document.problem(f"ports.{name}", message, fix))
    for i, generator in enumerate(pipeline.get("generators", [])):
        if kinds.generator is not None:
            key = f"generators[{i}]"
            problems += check_params(document, key, generator["params"], kinds.generator)
    used = set()
    for section in ("interfaces", "generators"):
        seen: set[str] = set()
        for i, entry in enumerate(pipeline.get(section, [])):
            key = f"{section}[{i}]"
            used.add(entry.get("port"))
            if entry.get("port") is not None and entry["port"] not in ports:
                problems.append(
                    document.problem(
                        key,
                        f"there is no port '{entry['port']}'",
                        suggestion(entry["port"], ports, "add it under ports:"),
                    )
                )
            if entry["name"] in seen:
                problems.append(
                    document.problem(
                        key, f"the name '{entry['name']}' is used twice", "names are unique"
                    )
                )
            seen.add(entry["name"])
    for name, module in pipeline.get("modules", {}).items():
        port = module["params"].get("port")
        if isinstance(port, str) and module["kind"] in ("port_in", "port_out"):
            used.add(port)
            if port not in ports:
                problems.append(
                    document.problem(
                        f"modules.{name}.params.port",
                        f"there is no port '{port}'",
                        suggestion(port, ports, "add it under ports:"),
                    )
                )
    for name in ports:
        if name not in used:
            problems.append(
                document.problem(
                    f"ports.{name}",
                    f"port '{name}' is not used",
                    "a port_in or port_out module uses a port",
                    is_warning=True,
                )
            )
    return problems


def _check_workers(document: Document, kinds: Kinds) -> list[Problem]:
    problems = []
    workers = {worker["name"] for worker in document.pipeline.get("workers", [])}
    cores: dict[int, str] = {}
    for i, worker in enumerate(document.pipeline.get("workers", [])):
        core = worker.get("core")
        if core is None:
            continue
        if core in cores:
            problems.append(
                document.problem(
                    f"workers[{i}]",
                    f"core {core} is already used by '{cores[core]}'",
                    "each worker has a core of its own",
                )
            )
        cores[core] = worker["name"]
    for name, module in document.pipeline.get("modules", {}).items():
        worker = module.get("worker")
        if worker is None:
            continue
        key = f"modules.{name}.worker"
        kind = kinds.modules.get(module["kind"])
        if worker not in workers:
            problems.append(
                document.problem(
                    key,
                    f"there is no worker '{worker}'",
                    suggestion(worker, workers, "add it under workers:"),
                )
            )
        elif kind is not None and not kind.is_input:
            problems.append(
                document.problem(
                    key,
                    f"'{name}' is no input, so it has no worker of its own",
                    "write worker: at the port_in, source or queue before it",
                )
            )
    return problems


def _in_file_order(problems: list[Problem]) -> list[Problem]:
    def key(problem: Problem) -> tuple[bool, str, int]:
        file, _, line = problem.where.rpartition(":")
        return (
            (problem.is_warning, file, int(line)) if line.isdigit() else (problem.is_warning, "", 0)
        )

    return sorted(_folded(problems), key=key)


def _folded(problems: list[Problem]) -> list[Problem]:
    """Mistakes that a repeat makes again and again are told once, with their number."""
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


# --- the daemon's own check ----------------------------------------------------------------------


def daemon_check(document: Document, daemon: Path) -> tuple[list[Problem], dict[str, Any]]:
    """What `batchplaned --check` finds (pool size, tables, addresses), and its plan."""
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
    return [daemon_problem(error, document) for error in answer.get("errors", [])], answer.get(
        "plan"
    ) or {}


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


def check_all(
    document: Document, kinds: Kinds, daemon: Path | None
) -> tuple[list[Problem], dict[str, Any]]:
    """Local checks, then the daemon's; what both see is told once."""
    problems = check_document(document, kinds)
    if daemon is None or not document.pipeline.get("modules"):
        return problems, {}
    found, plan = daemon_check(document, daemon)
    told = {problem.where for problem in problems if not problem.is_warning}
    messages = {problem.message.split(", and ")[0] for problem in problems}
    found = [problem for problem in found if problem.message not in messages]
    extra = [problem for problem in found if problem.where not in told or not problem.where]
    if told:
        # Without a place, or about the graph as a whole: it follows from what is already told.
        extra = [problem for problem in extra if problem.where and problem.key != "modules"]
    return _in_file_order(problems + extra), plan


def raise_errors(problems: list[Problem]) -> None:
    """Raises BadInput when there is any error; warnings pass."""
    errors = [problem for problem in problems if not problem.is_warning]
    if errors:
        raise BadInput(errors)
