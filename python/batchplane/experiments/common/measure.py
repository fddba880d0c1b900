# SPDX-License-Identifier: BSD-3-Clause
"""measure.py - simulates a case and records rate, batches, delays and violations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...base.promise import is_slo_broken
from ...sim.cases import with_seed
from ...sim.prepare import Inputs
from ...sim.result import Result
from ...sim.simulation import Simulation
from .case import Case
from .replay import with_trace

if TYPE_CHECKING:
    from pandas import DataFrame

# Where packets enter and leave; the papers do not count them as modules.
ENDS = ("port_in", "source", "sink", "port_out", "queue")


def run_case(inputs: Inputs, case: Case) -> dict[str, Any]:
    """The case's result as plain data."""
    spec = with_seed(inputs.spec, case.seed)
    if case.trace:
        spec = with_trace(spec, case.trace, case.seed)
    sim = Simulation(replace(inputs, spec=spec))
    result = sim.run(case.duration_ns, case.controller, case.period_ns, settings=case.settings)
    answer = summary(result, case)
    buffers = sim.show("buffers")["buffers"]
    answer["held_pkts"] = sum(int(row["held_pkts"]) for row in buffers)
    if case.watched_module:
        answer["watched_held_pkts"] = sum(
            int(row["held_pkts"]) for row in buffers if row["module"] == case.watched_module
        )
    if case.watched_module or case.watched_flow:
        answer["series"] = series(result, case)
    answer["moves"] = result.log.moves
    if case.by_module:
        answer["by_module"] = _by_module(result, case.warmup_periods * case.period_ns)
    return answer


def _by_module(result: Result, from_ns: int) -> dict[str, dict[str, int]]:
    """The batches, packets and drops of each module after the warm-up."""
    rows = result.module_periods
    rows = rows[rows["time_ns"] > from_ns]
    keys = ["batches", "pkts", "dropped_pkts"]
    sums = rows.groupby("module", observed=False)[keys].sum()
    return {
        str(name): {key: int(value) for key, value in zip(keys, values, strict=True)}
        for name, values in zip(sums.index, sums.to_numpy().tolist(), strict=True)
    }


def summary(result: Result, case: Case) -> dict[str, Any]:
    """Means over the periods after the warm-up."""
    from_ns = case.warmup_periods * case.period_ns
    periods = result.periods
    periods = periods[periods["time_ns"] > from_ns]
    seconds = float(periods["period_ns"].sum()) / 1e9
    flows = result.flow_periods
    flows = flows[(flows["time_ns"] > from_ns) & (flows["pkts"] > 0)]
    promised = flows[flows["slo_ns"] > 0]
    late = promised[is_slo_broken(promised, result.percentile)]
    excess = (late["delay_ns"] / late["slo_ns"] - 1.0).clip(lower=0.0)
    n_periods = len(periods)
    return {
        "modules": sum(
            entry.get("kind") not in ENDS for entry in result.last["runtime"]["modules"]
        ),
        "periods": n_periods,
        "rate_pps": float((periods["out_pps"] * periods["period_ns"]).sum()) / 1e9 / seconds,
        "busy_ratio": float(periods["busy_ratio"].mean()),
        "batch_mean_pkts": _batch_mean(result, from_ns),
        "delay_mean_of_periods_ns": float(flows["delay_ns"].mean()) if len(flows) else None,
        "delay_max_ns": int(flows["delay_max_ns"].max()) if len(flows) else None,
        "violated_ratio": late["time_ns"].nunique() / n_periods if len(promised) else None,
        "late_pkts_ratio": (
            float(promised["late_pkts"].sum()) / float(promised["pkts"].sum())
            if len(promised)
            else None
        ),
        "excess_mean_ratio": float(excess.mean()) if len(excess) else 0.0,
        "excess_max_ratio": float(excess.max()) if len(excess) else 0.0,
        "faults": len(result.faults),
        "flows": _flows(flows, seconds),
    }


def _flows(rows: DataFrame, seconds: float) -> dict[str, dict[str, float]]:
    """Rate and mean delay of each flow."""
    found = {}
    for flow, mine in rows.groupby("flow", observed=False):
        pkts = float(mine["pkts"].sum())
        found[str(flow)] = {
            "rate_pps": pkts / seconds,
            "delay_mean_ns": float(mine["delay_sum_ns"].sum()) / pkts if pkts else 0.0,
        }
    return found


def _batch_mean(result: Result, from_ns: int) -> float | None:
    """The mean over periods and controlled modules of packets per executed batch."""
    controlled = {str(e["name"]) for e in result.model["modules"] if e.get("is_controlled")}
    rows = result.module_periods
    rows = rows[(rows["time_ns"] > from_ns) & (rows["batches"] > 0)]
    rows = rows[rows["module"].isin(controlled)]
    return float(rows["batch_mean_pkts"].mean()) if len(rows) else None


def series(result: Result, case: Case) -> dict[str, list[Any]]:
    """Columns over the periods: totals, and those of the watched flow and module."""
    periods, flows = result.periods, result.flow_periods
    columns: dict[str, list[Any]] = {
        "time_ns": [int(t) for t in periods["time_ns"]],
        "out_pps": [float(rate) for rate in periods["out_pps"]],
        "busy_ratio": [float(busy) for busy in periods["busy_ratio"]],
    }
    is_late = is_slo_broken(flows, result.percentile).groupby(flows["time_ns"]).any()
    columns["is_violated"] = [bool(is_late.get(t, False)) for t in periods["time_ns"]]
    worst = flows.groupby("time_ns")["delay_max_ns"].max()
    columns["worst_delay_ns"] = [int(worst.get(t, 0)) for t in periods["time_ns"]]
    if case.watched_flow:
        one = flows[flows["flow"] == case.watched_flow]
        for name in ("delay_ns", "slo_ns", "delay_max_ns", "pkts", "late_pkts", "egress_bound_ns"):
            columns[name] = [int(value) for value in one[name]]
        budgets = result.budget_periods
        mine = budgets[budgets["flow"] == case.watched_flow]
        for key, name in (("budget_ns", "budget_ns"), ("leg_ns", "measured_ns")):
            columns[key] = [list(map(float, legs)) for _, legs in mine.groupby("time_ns")[name]]
    if case.watched_module:
        columns["trigger_pkts"] = _triggers(result.module_periods, case.watched_module)
        of_module = result.module_periods["module"] == case.watched_module
        columns["batch_mean_pkts"] = list(result.module_periods[of_module]["batch_mean_pkts"])
    return columns


def _triggers(rows: DataFrame, module: str) -> list[int]:
    return [int(value) for value in rows[rows["module"] == module]["trigger_pkts"]]
