# SPDX-License-Identifier: BSD-3-Clause
"""meter.py - counts what a program does with its batches, and closes the counters as periods.

Times are the program's own, in ns from any start, and never go back.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.percentile import percentile_or_0
from ..base.problems import BadInput, Problem, suggestion
from ..base.promise import DEFAULT_PERCENTILE
from ..costs.law import CostLaw, law_from
from .model import whole_model

_CAUSES = ("full", "age", "idle", "change")
_N_BUCKETS = 32  # of delays, by parts of the SLO: 24 below it, then quarters
_WITHIN = 24
_HOLE = 4.0  # times the usual time of such a batch: above it, something interrupted the batch


@dataclass
class _Module:
    law: CostLaw | None
    typical: float = 0.0  # measured over predicted time in the period before; 0: unknown
    ratios: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    held_pkts: int = 0
    began: tuple[int, int] | None = None  # the running batch: items, start time

    def add(self, **counts: int) -> None:
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def hole_ns(self, pkts: int, ns: int) -> int:
        """The part of a batch's time that is a gap, not work; a lasting slow-down soon counts as
        work."""
        law_ns = self.law.at(pkts) if self.law else 0.0
        if law_ns <= 0:
            return 0
        self.ratios.append(ns / law_ns)
        usual_ns = self.typical * law_ns
        return round(ns - usual_ns) if 0 < usual_ns < ns / _HOLE else 0

    def close(self) -> None:
        """Starts the next period."""
        if self.ratios:
            self.typical = statistics.median(self.ratios)
        self.ratios = []
        self.counts = {}


@dataclass
class _Task:
    """A worker, which polls whenever it has nothing else to do."""

    in_pkts: int = 0
    lost_pkts: int = 0
    firings: int = 0
    busy_ns: int = 0
    gaps: int = 0
    gap_ns: int = 0
    busy_since_ns: int | None = None
    has_waiting: bool = False  # items came while a batch was running
    run_ns: int = 0
    runs_ns: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Takes in new items: the previous run is over."""
        self.runs_ns.append(self.run_ns)
        self.run_ns = 0
        self.has_waiting = False


class Meter:
    """Measures a program whose batches a controller sizes, period by period."""

    def __init__(
        self, model: Mapping[str, Any], now_ns: int = 0, percentile: float = DEFAULT_PERCENTILE
    ):
        if not 0 <= percentile <= 1:
            raise BadInput(
                Problem(f"{percentile!r} is no percentile", key="percentile", fix="0 to 1")
            )
        self._model = whole_model(model)
        if any(len(task["inputs"]) != 1 for task in self._model["tasks"]):
            raise BadInput(Problem("a meter counts what enters a task at one input", key="tasks"))
        self._percentile = percentile
        self._numbers = {str(row["name"]): m for m, row in enumerate(self._model["modules"])}
        self._flow_numbers = {str(row["name"]): f for f, row in enumerate(self._model["flows"])}
        # By flow; you may change it at any time.
        self.slo_ns = {str(row["name"]): int(row.get("slo_ns", 0)) for row in self._model["flows"]}
        self._modules = [_Module(_law(row)) for row in self._model["modules"]]
        self._tasks = [_Task() for _ in self._model["tasks"]]
        self._delays_ns: list[list[int]] = [[] for _ in self._flow_numbers]
        self._from_ns = now_ns

    def entered(self, module: str, pkts: int = 1) -> None:
        """Call it when items come from outside together, into the buffer of their first module."""
        m = _number(module, self._numbers, "module")
        task = self._task_of(m)
        task.in_pkts += pkts
        if task.busy_since_ns is not None:
            task.has_waiting = True
        else:
            task.look()
        self.arrived(module, pkts)

    def arrived(self, module: str, pkts: int = 1) -> None:
        """Call it when items come together from the module before."""
        if pkts < 1:
            raise BadInput(Problem(f"{pkts!r} items arrived", key=module, fix="1 or more"))
        row = self._modules[_number(module, self._numbers, "module")]
        row.add(arrived_batches=1, arrived_pkts=pkts)
        row.held_pkts += pkts

    def lost(self, module: str, pkts: int = 1) -> None:
        """Call it when items from outside were refused."""
        self._task_of(_number(module, self._numbers, "module")).lost_pkts += pkts

    def began(self, module: str, pkts: int, now_ns: int, cause: str = "full") -> None:
        """Call it when the worker starts a batch: it was large enough (`full`), or due by `age`."""
        if cause not in _CAUSES:
            raise BadInput(Problem(f"no cause '{cause}'", fix=suggestion(cause, _CAUSES)))
        m = _number(module, self._numbers, "module")
        row = self._modules[m]
        task = self._task_of(m)
        if task.busy_since_ns is not None or pkts > row.held_pkts:
            why = "its worker is busy" if task.busy_since_ns is not None else "it holds fewer"
            raise BadInput(Problem(f"{pkts} items of '{module}' cannot run: {why}"))
        row.held_pkts -= pkts
        row.add(**{f"{cause}_firings": 1, f"{cause}_pkts": pkts})
        row.began = (pkts, now_ns)
        task.busy_since_ns = now_ns

    def ended(self, module: str, now_ns: int) -> None:
        """Call it when the batch is done."""
        m = _number(module, self._numbers, "module")
        row = self._modules[m]
        task = self._task_of(m)
        if row.began is None or task.busy_since_ns is None:
            raise BadInput(Problem(f"no batch of '{module}' is running"))
        pkts, began_ns = row.began
        row.began = None
        ns = now_ns - began_ns
        row.add(batches=1, pkts=pkts)
        if hole_ns := row.hole_ns(pkts, ns):
            task.gaps += 1
            task.gap_ns += hole_ns
        else:
            row.add(sampled_batches=1, sampled_pkts=pkts, sampled_ns=ns)
            row.add(sampled_pkts_squared=pkts * pkts, sampled_pkts_ns=pkts * ns)
        task.firings += 1
        task.busy_ns += now_ns - task.busy_since_ns
        task.busy_since_ns = None
        task.run_ns += ns
        if task.has_waiting:
            task.look()

    def left(self, flow: str, delay_ns: int) -> None:
        """Call it when an item is done, with its delay since it came."""
        self._delays_ns[_number(flow, self._flow_numbers, "flow")].append(delay_ns)

    def close(self, now_ns: int) -> dict[str, Any]:
        """The counters since the last call, for Controller.step()."""
        period_ns = now_ns - self._from_ns
        if period_ns <= 0:
            raise BadInput(Problem("a period takes some time", key="now_ns"))
        self._from_ns = now_ns
        tasks = [self._close_task(task, period_ns, now_ns) for task in self._tasks]
        inputs = [self._tasks[row["task"]] for row in self._model["inputs"]]
        for row, task in zip(self._model["inputs"], inputs, strict=True):
            self._modules[row["module"]].add(pkts=task.in_pkts)
        period = {
            "now_ns": now_ns,
            "period_ns": period_ns,
            "modules": _columns([{**m.counts, "held_pkts": m.held_pkts} for m in self._modules]),
            "flows": _columns(
                [
                    _flow_row(delays_ns, slo_ns, self._percentile)
                    for delays_ns, slo_ns in zip(self._delays_ns, self.slo_ns.values(), strict=True)
                ]
            ),
            "tasks": _columns(tasks),
            "inputs": _columns(
                [
                    {
                        "offered_pkts": task.in_pkts + task.lost_pkts,
                        "taken_pkts": task.in_pkts,
                        "lost_pkts": task.lost_pkts,
                    }
                    for task in inputs
                ]
            ),
        }
        for module in self._modules:
            module.close()
        for task in self._tasks:
            task.in_pkts = task.lost_pkts = task.firings = task.busy_ns = 0
            task.gaps = task.gap_ns = 0
            task.runs_ns = []
        self._delays_ns = [[] for _ in self._flow_numbers]
        return period

    def _task_of(self, module: int) -> _Task:
        return self._tasks[int(self._model["modules"][module]["task"])]

    @staticmethod
    def _close_task(task: _Task, period_ns: int, now_ns: int) -> dict[str, int]:
        # A batch that is still running belongs to both periods, each with its part.
        if task.busy_since_ns is not None:
            task.busy_ns += now_ns - task.busy_since_ns
            task.busy_since_ns = now_ns
        runs_ns = sorted(task.runs_ns)
        return {
            "in_pkts": task.in_pkts,
            "runs": len(runs_ns),
            "busy_ns": task.busy_ns,
            "idle_ns": max(0, period_ns - task.busy_ns),
            "run_p99_ns": percentile_or_0(runs_ns, 0.99),
            "run_max_ns": runs_ns[-1] if runs_ns else 0,
            "gaps": task.gaps,
            "gap_ns": min(task.gap_ns, task.busy_ns),
            "busy_gap_ns": min(task.gap_ns, task.busy_ns),
            "firings": task.firings,
        }


def _law(row: Mapping[str, Any]) -> CostLaw | None:
    """None if the model has no cost: an input, or a module of a running pipeline."""
    return law_from(row) if "table_ns" in row or "cost_per_batch_ns" in row else None


def _number(name: str, numbers: Mapping[str, int], what: str) -> int:
    if name not in numbers:
        raise BadInput(Problem(f"there is no {what} '{name}'", fix=suggestion(name, numbers)))
    return numbers[name]


def _flow_row(delays_ns: list[int], slo_ns: int, percentile: float) -> dict[str, Any]:
    delays_ns.sort()
    buckets = [0] * _N_BUCKETS
    for delay_ns in delays_ns if slo_ns > 0 else ():
        part = delay_ns * _WITHIN // slo_ns
        beyond = _WITHIN + (part - _WITHIN) // (_WITHIN // 4)
        buckets[part if part < _WITHIN else min(beyond, _N_BUCKETS - 1)] += 1
    mean_ns = sum(delays_ns) // max(1, len(delays_ns))
    return {
        "slo_ns": slo_ns,
        "pkts": len(delays_ns),
        "late_pkts": sum(delay_ns > slo_ns for delay_ns in delays_ns) if slo_ns > 0 else 0,
        "delay_sum_ns": sum(delays_ns),
        "delay_max_ns": delays_ns[-1] if delays_ns else 0,
        "delay_ns": percentile_or_0(delays_ns, percentile) if percentile > 0 else mean_ns,
        "p50_ns": percentile_or_0(delays_ns, 0.5),
        "p99_ns": percentile_or_0(delays_ns, 0.99),
        "slo_buckets": buckets,
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, 0) for row in rows] for name in names}
