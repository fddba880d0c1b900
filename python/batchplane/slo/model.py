# SPDX-License-Identifier: BSD-3-Clause
"""model.py - turns the short form of a model, for programs that are no pipeline, into the long one.

The long form is the answer of `show model`. The short one has what a program knows: the stages that
run batches, the cost of a batch there, and the paths of the items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..base.problems import BadInput, Problem, suggestion

BATCH_LIMIT_PKTS = 32
_WORKER = "worker"
_KEYS = ("batch_limit_pkts", "modules", "flows")
_COST_KEYS = ("cost_per_batch_ns", "cost_per_pkt_ns", "table_ns", "table_pkts")
_MODULE_KEYS = ("name", "worker", "is_controlled", *_COST_KEYS)
_FLOW_KEYS = ("name", "path", "slo_ns")


def whole_model(given: Mapping[str, Any]) -> dict[str, Any]:
    """The long form of either form. Raises BadInput."""
    if "tasks" in given:
        return dict(given)
    _check_keys(given, _KEYS, "model")
    modules = [_module(row) for row in _rows(given, "modules")]
    names = [str(row["name"]) for row in modules]
    _check_names(names, "modules")
    for module in modules:
        module["worker"] = str(module["worker"])
    workers = list(dict.fromkeys(module["worker"] for module in modules))
    inputs = [f"(input of {worker})" for worker in workers]
    flows = []
    edges: dict[tuple[int, int], int] = {}
    for row in _rows(given, "flows"):
        path = _path(row, names)
        task = _only_task(row, [workers.index(modules[m]["worker"]) for m in path], workers)
        whole = [len(names) + task, *path]
        for edge in pairwise(whole):
            edges.setdefault(edge, sum(at == edge[0] for at, _ in edges))
        flows.append({"name": row["name"], "path": whole, "slo_ns": _slo_ns(row), "legs": []})
    _check_names([str(row["name"]) for row in flows], "flows")
    order = _run_order(len(names), edges, names)
    for row in modules:
        row["task"] = workers.index(row.pop("worker"))
    modules += [
        {"name": name, "task": task, "has_buffer": False, "is_controlled": False}
        for task, name in enumerate(inputs)
    ]
    tasks = [
        {
            "worker": task,
            "inputs": [len(names) + task],
            "modules": [m for m in order if modules[m]["task"] == task],
        }
        for task in range(len(workers))
    ]
    return {
        "batch_limit_pkts": given.get("batch_limit_pkts", BATCH_LIMIT_PKTS),
        "modules": modules,
        "edges": [{"from": a, "gate": gate, "to": b} for (a, b), gate in edges.items()],
        "flows": flows,
        "tasks": tasks,
        "inputs": [
            {"module": len(names) + task, "task": task, "is_queue": False}
            for task in range(len(workers))
        ],
        "legs": [],
        "workers": workers,
    }


def _rows(given: Mapping[str, Any], section: str) -> Sequence[Mapping[str, Any]]:
    rows = given.get(section)
    is_list = isinstance(rows, Sequence) and not isinstance(rows, str)
    if not is_list or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise _mistake(section, "is no list of objects, or is empty", "[{'name': ..}]")
    for row in rows:
        if not isinstance(row.get("name"), str):
            raise _mistake(section, "has a row without a name", "[{'name': ..}]")
    return rows  # type: ignore[no-any-return]


def _module(row: Mapping[str, Any]) -> dict[str, Any]:
    _check_keys(row, _MODULE_KEYS, f"modules.{row['name']}")
    if not any(key in row for key in _COST_KEYS):
        fix = "give cost_per_batch_ns and cost_per_pkt_ns, or table_ns"
        raise _mistake(f"modules.{row['name']}", "has no cost", fix)
    default = {"worker": _WORKER, "is_controlled": True, "has_buffer": True, "is_egress": False}
    return {**default, **row}


def _path(row: Mapping[str, Any], names: Sequence[str]) -> list[int]:
    where = f"flows.{row['name']}"
    _check_keys(row, _FLOW_KEYS, where)
    path = row.get("path")
    if isinstance(path, str) or not isinstance(path, Sequence) or not path:
        raise _mistake(f"{where}.path", "is no list of modules", f"['{names[0]}']")
    for name in path:
        if name not in names:
            fix = suggestion(str(name), names)
            raise _mistake(f"{where}.path", f"there is no module '{name}'", fix)
    return [names.index(name) for name in path]


def _only_task(row: Mapping[str, Any], tasks: Sequence[int], workers: Sequence[str]) -> int:
    if len(set(tasks)) > 1:
        crossed = " and ".join(f"'{workers[task]}'" for task in sorted(set(tasks)))
        fix = "a controller for each worker, with a part of slo_ns"
        raise _mistake(f"flows.{row['name']}.path", f"crosses workers {crossed}", fix)
    return tasks[0]


def _slo_ns(row: Mapping[str, Any]) -> int:
    slo_ns = row.get("slo_ns", 0)
    if isinstance(slo_ns, bool) or not isinstance(slo_ns, int | float) or not 0 <= slo_ns < 1e15:
        raise _mistake(f"flows.{row['name']}.slo_ns", f"is {slo_ns!r}", "a time in ns; 0: none")
    return round(slo_ns)


def _run_order(n: int, edges: Mapping[tuple[int, int], int], names: Sequence[str]) -> list[int]:
    """An order in which each module comes after all that precede it on any path."""
    before: list[set[int]] = [set() for _ in range(n)]
    for a, b in edges:
        if a < n:
            before[b].add(a)
    order: list[int] = []
    while len(order) < n:
        ready = [m for m in range(n) if m not in order and before[m] <= set(order)]
        if not ready:
            rest = ", ".join(names[m] for m in range(n) if m not in order)
            raise _mistake("flows", f"go round in a circle over {rest}", "let ways go one way")
        order += ready
    return order


def _check_keys(row: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in row:
        if key not in known:
            raise _mistake(f"{where}.{key}", "is unknown", suggestion(str(key), known))


def _check_names(names: Sequence[str], section: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise _mistake(section, f"'{name}' is there twice", "give each a name of its own")


def _mistake(key: str, message: str, fix: str) -> BadInput:
    return BadInput(Problem(message, key=key, fix=fix))
