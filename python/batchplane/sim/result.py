# SPDX-License-Identifier: BSD-3-Clause
"""result.py - the results of a simulated run: pandas frames, and the usual report of a run.

Frames (times in ns, rates in packets per second):
- `flows`, `modules`: one row each, over the whole run;
- `periods`: one row per period: rates, busy share, the longest turnaround;
- `module_periods`, `flow_periods`: one row per period and module or flow;
- `packets`, `hops`, `firings`: single ones, if they were requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..base.promise import DEFAULT_PERCENTILE, is_slo_broken
from ..control.python import ControllerFault
from ..show.rates import PERCENTILES, Snapshot, buffer_list, compute_rates
from ..show.report import report_json
from .records import named_frame

if TYPE_CHECKING:
    from pandas import DataFrame

SIMULATED = "simulated"

_MODULE_COLUMNS = (
    "batches",
    "pkts",
    "arrived_batches",
    "arrived_pkts",
    "dropped_pkts",
    "late_releases",
    "trigger_pkts",
    "held_pkts",
    "age_limit_ns",
)
_FLOW_COLUMNS = (
    "slo_ns",
    "pkts",
    "late_pkts",
    "delay_sum_ns",
    "delay_max_ns",
    "delay_ns",
    "egress_bound_ns",  # bound of a scheduler on the path; 0: no guarantee
    "is_beyond_share",  # of the link: its queue grows
)


class PeriodLog:
    """Collects periods as they pass; frames are made on demand."""

    def __init__(self, model: Mapping[str, Any]):
        self._flows = [str(entry["name"]) for entry in model["flows"]]
        # Inputs of the pipeline. A queue between tasks has a buffer, so it does not count.
        self._entries = [i for i, row in enumerate(model["modules"]) if not row["has_buffer"]]
        self._periods: list[Mapping[str, Any]] = []
        self._names: list[list[str]] = []  # of modules, by period
        self._states: list[list[str]] = []
        self._reasons: list[dict[int, str]] = []
        self._budgets: list[list[list[Mapping[str, float]]]] = []  # [period][flow][leg]
        self._tasks_of_legs: list[list[list[int]]] = []  # likewise
        self.moves: list[dict[str, Any]] = []
        self.model_is(model)

    def model_is(self, model: Mapping[str, Any]) -> None:
        """Parts have moved: the model applies from the next period on."""
        self._modules = [str(entry["name"]) for entry in model["modules"]]
        self._workers = [str(name) for name in model["workers"]]
        self._legs = [
            [int(model["legs"][leg]["task"]) for leg in entry.get("legs", [])]
            for entry in model["flows"]
        ]

    def add(self, period: Mapping[str, Any], decision: Mapping[str, Any] | None) -> None:
        """Records a period and the decision after it."""
        self._periods.append(period)
        self._names.append(self._modules)
        self._tasks_of_legs.append(self._legs)
        decision = decision or {}
        self.moves += [
            {
                "time_ns": int(period["now_ns"]),
                "module": self._modules[move["module"]],
                "worker": self._workers[move["worker"]],
                "reason": move.get("reason", ""),
            }
            for move in decision.get("moves", [])
        ]
        verdicts = decision.get("flows") or []
        self._budgets.append([list(verdict.get("legs") or []) for verdict in verdicts])
        self._states.append([str(verdict.get("state", "")) for verdict in verdicts])
        self._reasons.append(
            {change["module"]: change.get("reason", "") for change in decision.get("changes", [])}
        )

    def periods(self) -> DataFrame:
        """One row per period."""
        import numpy as np
        import pandas as pd

        rows = []
        for period, reasons in zip(self._periods, self._reasons, strict=True):
            tasks, flows, inputs = period["tasks"], period["flows"], period["inputs"]
            modules = period["modules"]
            seconds = max(int(period["period_ns"]), 1) / 1e9
            busy_ns = np.asarray(tasks["busy_ns"], dtype=float)
            rows.append(
                {
                    "time_ns": int(period["now_ns"]),
                    "period_ns": int(period["period_ns"]),
                    "offered_pps": float(np.sum(inputs["offered_pkts"])) / seconds,
                    "lost_pps": float(np.sum(inputs["lost_pkts"])) / seconds,
                    "ring_fill_max_pkts": int(np.max(inputs["fill_max_pkts"], initial=0)),
                    "in_pps": float(np.sum(modules["pkts"][self._entries])) / seconds,
                    "out_pps": float(np.sum(flows["pkts"])) / seconds,
                    "busy_ratio": float(busy_ns.max(initial=0.0)) / seconds / 1e9,
                    "run_max_ns": int(np.max(tasks["run_max_ns"], initial=0)),
                    "worst_firings_per_run": int(np.max(tasks["worst_firings_per_run"], initial=0)),
                    "changes": len(reasons),
                }
            )
        return pd.DataFrame(rows)

    def module_periods(self) -> DataFrame:
        """One row per period and module."""
        frame = self._long("modules", "module", self._names, _MODULE_COLUMNS)
        if len(frame):
            frame["batch_mean_pkts"] = frame["pkts"] / frame["batches"].where(frame["batches"] > 0)
            frame["reason"] = [
                reasons.get(i, "")
                for names, reasons in zip(self._names, self._reasons, strict=True)
                for i in range(len(names))
            ]
        return frame

    def budget_periods(self) -> DataFrame:
        """One row per period, flow and task, if the controller divides delay budgets."""
        import pandas as pd

        rows = [
            {
                "time_ns": int(period["now_ns"]),
                "flow": self._flows[f],
                "task": task,
                "budget_ns": float(leg["budget_ns"]),
                "measured_ns": float(leg["measured_ns"]),
                "load_per_us": float(leg["load_per_us"]),
            }
            for period, flows, tasks in zip(
                self._periods, self._budgets, self._tasks_of_legs, strict=True
            )
            for f, legs in enumerate(flows)
            for task, leg in zip(tasks[f], legs, strict=False)
        ]
        names = ("time_ns", "flow", "task", "budget_ns", "measured_ns", "load_per_us")
        return pd.DataFrame(rows, columns=pd.Index(names))

    def flow_periods(self) -> DataFrame:
        """One row per period and flow; `state` is the controller's view of the flow."""
        names = [self._flows] * len(self._periods)
        frame = self._long("flows", "flow", names, _FLOW_COLUMNS)
        if len(frame):
            frame["rate_pps"] = frame["pkts"] / frame["period_ns"] * 1e9
            frame["delay_mean_ns"] = frame["delay_sum_ns"] / frame["pkts"].where(frame["pkts"] > 0)
            frame["state"] = [
                states[i] if i < len(states) else ""
                for states in self._states
                for i in range(len(self._flows))
            ]
        return frame

    def _long(
        self, section: str, label: str, names: list[list[str]], columns: tuple[str, ...]
    ) -> DataFrame:
        """`names`: of the rows of each period."""
        import numpy as np
        import pandas as pd

        sizes = [len(of_period) for of_period in names]
        known = {name: None for of_period in names for name in of_period}
        data: dict[str, Any] = {
            "time_ns": np.repeat([int(p["now_ns"]) for p in self._periods], sizes),
            "period_ns": np.repeat([int(p["period_ns"]) for p in self._periods], sizes),
            label: pd.Categorical(
                [name for of_period in names for name in of_period],
                categories=pd.Index(list(known)),
            )
            if known
            else [],
        }
        for column in columns:
            # The extension may count further flows after the declared ones; they have no name here.
            parts = [
                np.asarray(period[section][column])[:n]
                for period, n in zip(self._periods, sizes, strict=True)
            ]
            data[column] = np.concatenate(parts) if parts else np.array([])
        return pd.DataFrame(data)


@dataclass
class Result:
    """A simulated run."""

    pipeline: str
    controller: str
    seed: int
    period_ns: int
    first: Snapshot
    last: Snapshot
    report: dict[str, Any]  # like a daemon's final report: the balance after everything has drained
    model: dict[str, Any]
    log: PeriodLog
    cpu_s: float = 0.0
    percentile: float = DEFAULT_PERCENTILE
    faults: list[ControllerFault] = field(default_factory=list)
    events: list[str] = field(default_factory=list)  # of the scenario, as they happened
    warnings: list[str] = field(default_factory=list)
    recorded: dict[str, dict[str, Any]] = field(default_factory=dict)
    label: str = SIMULATED

    @property
    def hello(self) -> dict[str, Any]:
        """What a daemon would answer to `hello`, as far as a simulation has it."""
        return {"label": self.label, "name": self.pipeline, "pipeline": self.pipeline}

    @property
    def simulated_ns(self) -> int:
        """Virtual time between the first and the last snapshot."""
        return int(self.last["runtime"]["now_ns"] - self.first["runtime"]["now_ns"])

    @property
    def rate_pps(self) -> float:
        """Packets per second that left."""
        return compute_rates(self.first, self.last).out_pps

    @property
    def speed_pps(self) -> float:
        """Simulated packets per second of CPU time."""
        pkts = self.rate_pps * self.simulated_ns / 1e9
        return pkts / self.cpu_s if self.cpu_s > 0 else 0.0

    @property
    def violated_ratio(self) -> float | None:
        """Share of periods in which any flow missed its SLO; None if no flow has one."""
        frame = self.flow_periods
        frame = frame[(frame["slo_ns"] > 0) & (frame["pkts"] > 0)]
        if frame.empty:
            return None
        is_broken = is_slo_broken(frame, self.percentile)
        return float(is_broken.groupby(frame["time_ns"]).any().mean())

    @property
    def periods(self) -> DataFrame:
        """One row per period."""
        return self.log.periods()

    @property
    def module_periods(self) -> DataFrame:
        """One row per period and module."""
        return self.log.module_periods()

    @property
    def flow_periods(self) -> DataFrame:
        """One row per period and flow."""
        return self.log.flow_periods()

    @property
    def moves(self) -> DataFrame:
        """One row for each part that the controller moved to another worker."""
        import pandas as pd

        names = ("time_ns", "module", "worker", "reason")
        return pd.DataFrame(self.log.moves, columns=pd.Index(names))

    @property
    def budget_periods(self) -> DataFrame:
        """One row per period, flow and task, if the controller divides delay budgets."""
        return self.log.budget_periods()

    @property
    def flows(self) -> DataFrame:
        """One row per flow, from the first snapshot to the last; percentiles since the start."""
        import pandas as pd

        before = {row["name"]: row for row in self.first["flows"]}
        seconds = max(self.simulated_ns, 1) / 1e9
        rows = []
        for row in self.last["flows"]:
            old = before.get(row["name"], {})
            pkts = row["pkts"] - old.get("pkts", 0)
            late = row["late_pkts"] - old.get("late_pkts", 0)
            percentiles = row.get("percentiles_ns") or {}
            rows.append(
                {
                    "flow": row["name"],
                    "rate_pps": pkts / seconds,
                    "delay_slo_ns": row.get("delay_slo_ns") or None,
                    "delay_mean_ns": row.get("delay_mean_ns"),
                    **{f"delay_{p}_ns": percentiles.get(p) for p in PERCENTILES},
                    "delay_max_ns": row.get("delay_max_ns"),
                    "pkts": pkts,
                    "late_pkts": late,
                }
            )
        return pd.DataFrame(rows).set_index("flow")

    @property
    def modules(self) -> DataFrame:
        """One row per module, from the first snapshot to the last."""
        import pandas as pd

        before = {row["name"]: row for row in self.first["runtime"]["modules"]}
        buffers = {row["module"]: row for row in buffer_list(self.last)}
        seconds = max(self.simulated_ns, 1) / 1e9
        rows = []
        for row in self.last["runtime"]["modules"]:
            old = before.get(row["name"], {})
            pkts = row["pkts"] - old.get("pkts", 0)
            batches = row["batches"] - old.get("batches", 0)
            buffer = buffers.get(row["name"], {})
            causes = buffer.get("causes", {})
            rows.append(
                {
                    "module": row["name"],
                    "kind": row.get("kind", ""),
                    "rate_pps": pkts / seconds,
                    "batches": batches,
                    "pkts": pkts,
                    "batch_mean_pkts": pkts / batches if batches else None,
                    "ns_per_pkt": row.get("ns_per_pkt"),
                    "trigger_pkts": buffer.get("trigger_pkts"),
                    "age_limit_ns": buffer.get("age_limit_ns"),
                    **{
                        f"{cause}_firings": counts.get("firings", 0)
                        for cause, counts in causes.items()
                    },
                }
            )
        return pd.DataFrame(rows).set_index("module")

    def frame(self, what: str) -> DataFrame | None:
        """`packets`, `hops` or `firings`, with names for numbers; None if not recorded."""
        columns = self.recorded.get(what)
        if columns is None:
            return None
        return named_frame(what, self.recorded, self.model, self._traffic_flows())

    def _traffic_flows(self) -> list[str]:
        """Names in the order of their numbers, prefixed by the generator if two are the same."""
        pairs = [
            (str(generator["name"]), str(flow["name"]))
            for generator in self.last.get("generators", [])
            for flow in generator.get("flows", [])
        ]
        names = [flow for _, flow in pairs]
        if len(set(names)) == len(names):
            return names
        return [f"{generator}.{flow}" for generator, flow in pairs]

    @property
    def packets(self) -> DataFrame | None:
        """Single packets, if `record_packets` was given."""
        return self.frame("packets")

    @property
    def hops(self) -> DataFrame | None:
        """The paths of the recorded packets through the modules."""
        return self.frame("hops")

    @property
    def firings(self) -> DataFrame | None:
        """Single firings, if `record_firings` was given."""
        return self.frame("firings")

    def as_json(self) -> dict[str, Any]:
        """The report for programs, as `run --json` prints it, and what only a simulation has."""
        return {
            **report_json(self.first, self.last, self.hello, self.report),
            "controller": self.controller,
            "seed": self.seed,
            "period_ns": self.period_ns,
            "violated_ratio": self.violated_ratio,
            "speed_pps": self.speed_pps,
            "events": self.events,
            "warnings": self.warnings,
            "faults": [
                {"period": fault.period, "now_ns": fault.now_ns, "message": fault.message}
                for fault in self.faults
            ],
        }
