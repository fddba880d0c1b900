#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""twin.py - daemon and simulator side by side: how much the simulation differs from measurements.

usage: bench/twin.py [--runs 5] [--seconds 1] [--out FILE.json] [CASE...]

In each run the case is profiled, the daemon runs it, and it is profiled again, all on the same
machine within a minute; the simulator runs it with both costs, and their mean counts. Shared
machines change their speed by half within seconds, without visibly taking any time. So a profile
has the costs of the times at which the machine was fastest. And of the daemon's periods (20 ms)
only those count that take at most 1.1 times the time per packet of the fastest tenth, and in which,
as in the one before, the machine took next to nothing from worker and generators: a gap of some 30
us now and then, which the simulation gets too. Both rates leave out gaps. A run counts if both
profiles found the machine equally fast. The table has medians over runs, modules and flows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from case_daemon import ROOT, loaded, on_daemon
from case_rows import wanted_cases, write_rows

sys.path.insert(0, str(ROOT / "python"))

from batchplane import Machine, Simulation
from batchplane.commands.change import change
from batchplane.control.options import ControlOptions
from batchplane.lang.canonical import Document
from batchplane.profile.measure import ProfileOptions, profile_pipeline

# Name -> pipeline, its parameters, the trigger of its buffers. Saturated cases show the rate; the
# others, at a load that sometimes leaves the worker idle, show the delays.
CASES: dict[str, tuple[str, list[str], int]] = {
    "simple, trigger 16": ("simple", ["saturate=true", "trigger=16"], 16),
    "tree": ("tree", ["saturate=true"], 0),
    "robot_control(16), null": ("robot_control", ["n=16"], 0),
    "robot_control(16), 32": ("robot_control", ["n=16"], 32),
    "l2l3(16)": ("l2l3", ["nexthops=16", "saturate=true"], 0),
    "l2l3(16), trigger 32": ("l2l3", ["nexthops=16", "saturate=true"], 32),
    "gateway(16)": ("gateway", ["nexthops=16", "saturate=true"], 0),
    "gateway(16), trigger 32": ("gateway", ["nexthops=16", "saturate=true"], 32),
    "vrf(2,4)": ("vrf", ["vrfs=2", "nexthops=4", "saturate=true"], 0),
    "vrf(2,4), trigger 32": ("vrf", ["vrfs=2", "nexthops=4", "saturate=true"], 32),
    "simple, 1 Mpps": ("simple", ["rate_pps=1000000"], 0),
    "gateway(16), 4 Mpps": ("gateway", ["nexthops=16", "rate_pps=4000000"], 8),
}
# Accepted difference of each quantity, for the verdict.
LIMITS = {"batch": 0.03, "rate": 0.10, "p50": 0.10, "p95": 0.15}
REPORTED = ("batch", "rate", "p50", "p95", "p99")
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
PERIOD = "20ms"
SETTLE_PERIODS = 2
# In a calm period the machine takes at most these shares from the worker, and from the generators,
# which share their core with the control thread.
WORKER_SHARE, GENERATOR_SHARE = 0.025, 0.05
MIN_CALM = 5
# The profiles before and after a run may differ by this; tries for each requested run.
STEADY, MAX_TRIES = 0.08, 3
FAST = 1.1  # most time per packet in a period, relative to the fastest tenth
POLL_PKTS = 32
MIN_HOLE_NS, HOLE_LENGTHS = 2_000, 20

Values = dict[str, dict[str, float]]  # quantity -> module or flow -> value


def calm_periods(periods: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The periods that the machine did not disturb, and whose predecessors it did not disturb."""

    def disturbance(period: dict[str, Any]) -> float:
        worker = period["gap_ns"] / period["period_ns"] / WORKER_SHARE
        return max(worker, period["generator_gap_ns"] / period["period_ns"] / GENERATOR_SHARE)

    pairs = list(itertools.pairwise(periods))[SETTLE_PERIODS:]
    judged = [(max(disturbance(before), disturbance(now)), now) for before, now in pairs]
    return [period for share, period in judged if share <= 1]


def fast_periods(calm: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The periods in which the machine was at its fastest, as in a profile."""

    def ns_per_pkt(period: dict[str, Any]) -> float:
        left_ns: int = period["period_ns"] - period["gap_ns"]
        return left_ns / max(period["in_pkts"], 1)

    if not calm:
        return []
    fastest = sorted(map(ns_per_pkt, calm))[len(calm) // 10]
    return [period for period in calm if ns_per_pkt(period) <= FAST * fastest]


def batches_and_rates(history: dict[str, Any], calm: Sequence[dict[str, Any]]) -> Values:
    """The mean batch of every module and the rate of every flow over these periods."""
    left_ns = sum(period["period_ns"] - period["gap_ns"] for period in calm)
    found: Values = {"batch": {}, "rate": {}}
    for i, name in enumerate(history["modules"]):
        batches = sum(period["modules"][i][0] for period in calm)
        if batches:
            found["batch"][name] = sum(period["modules"][i][1] for period in calm) / batches
    for i, name in enumerate(history["flows"]):
        found["rate"][name] = sum(period["flows"][i][0] for period in calm) / left_ns * 1e9
    return found


def delays(history: dict[str, Any], calm: Sequence[dict[str, Any]]) -> dict[str, float]:
    """For each flow the median over periods of the controller's percentile."""
    return {
        name: statistics.median(period["flows"][i][2] for period in calm)
        for i, name in enumerate(history["flows"])
        if any(period["flows"][i][0] for period in calm)
    }


def controller_words(trigger: int, percentile: float) -> list[str]:
    return [
        f"controller=fixed({trigger})",
        f"controller.period={PERIOD}",
        f"controller.percentile={percentile}",
    ]


def measured(
    document: Document, trigger: int, seconds: float
) -> tuple[Values, float, Machine] | None:
    """One run of the daemon: values over its calm periods, their share, and their gaps."""
    control = ControlOptions(None, has_profile=False)
    values: Values = {}
    calm_share = []
    with on_daemon(document, "twin", control) as (daemon, client):
        for name, percentile in PERCENTILES.items():
            change(daemon, controller_words(trigger, percentile), document.pipeline)
            time.sleep(seconds)
            history = client.show("periods")
            calm = fast_periods(calm_periods(history["periods"]))
            if len(calm) < MIN_CALM:  # once more for the same time
                time.sleep(seconds)
                history = client.show("periods")
                calm = fast_periods(calm_periods(history["periods"]))
            calm_share.append(len(calm) / max(len(history["periods"]), 1))
            if len(calm) < MIN_CALM:
                return None
            stalls = stalls_of(calm)
            values |= batches_and_rates(history, calm)
            values[name] = delays(history, calm)
    return values, min(calm_share), stalls


def profile_of(document: Document) -> dict[str, Any]:
    """The costs of the pipeline on this machine right now."""
    return profile_pipeline(document.pipeline, options=ProfileOptions(ms_per_module=60.0))


def are_alike(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether the machine was equally fast both times, by the cost of packets in full polls."""
    full = [
        {
            (p["from_other_core"], p["trigger_pkts"]): p["measured_ns_per_pkt"]
            for p in profile["check"]["points"]
            if round(p["pkts_per_loop"]) == POLL_PKTS
        }
        for profile in (before, after)
    ]
    both = full[0].keys() & full[1].keys()
    if not both:
        return False
    drift = sum(full[1][key] for key in both) / sum(full[0][key] for key in both)
    return 1 / (1 + STEADY) <= drift <= 1 + STEADY


def lengths_around(mean_ns: float) -> tuple[int, ...]:
    """The lengths of gaps with this mean, none below MIN_HOLE_NS: many short and few long ones, as
    quantiles of an exponential distribution above that."""
    beyond_ns = max(mean_ns - MIN_HOLE_NS, 0.0)
    shares = [(i + 0.5) / HOLE_LENGTHS for i in range(HOLE_LENGTHS)]
    return tuple(round(MIN_HOLE_NS - beyond_ns * math.log(1 - share)) for share in shares)


def stalls_of(calm: Sequence[dict[str, Any]]) -> Machine:
    """The short gaps in calm periods. Timer ticks hold up both cores at once; the generators have
    further gaps of their own, when the control thread shares their core and when they yield it.
    Those gaps empty the ring, and thus the buffers."""
    lasted_s = sum(period["period_ns"] for period in calm) / 1e9
    gaps = sum(period["gaps"] for period in calm)
    gap_ns = sum(period["gap_ns"] for period in calm)
    own_gaps = sum(period["generator_gaps"] for period in calm) - gaps
    own_ns = sum(period["generator_gap_ns"] for period in calm) - gap_ns
    machine = Machine()
    if gaps:
        lengths_ns = (round(gap_ns / gaps),)
        machine = replace(machine, stall_rate_per_s=gaps / lasted_s, stall_lengths_ns=lengths_ns)
    if own_gaps > 0 and own_ns > 0:
        machine = replace(
            machine,
            generator_stall_rate_per_s=own_gaps / lasted_s,
            generator_stall_lengths_ns=lengths_around(own_ns / own_gaps),
        )
    return machine


def mean_of(a: Values, b: Values) -> Values:
    """The mean of two simulations of the same case."""
    return {
        quantity: {name: (value + b[quantity][name]) / 2 for name, value in values.items()}
        for quantity, values in a.items()
    }


def simulated(
    document: Document, trigger: int, costs: Path, profile: dict[str, Any], stalls: Machine
) -> Values:
    """The same in virtual time, with these costs and gaps."""
    costs.write_text(json.dumps(profile), encoding="utf-8")
    values: Values = {}
    for name, percentile in PERCENTILES.items():
        simulation = Simulation(document, costs=costs, machine=stalls)
        result = simulation.run(
            "300ms", f"fixed({trigger})", PERIOD, settings={"percentile": percentile}
        )
        flows, modules = result.flow_periods, result.module_periods
        since_ns = result.periods["time_ns"].iloc[SETTLE_PERIODS]
        flows, modules = flows[flows.time_ns > since_ns], modules[modules.time_ns > since_ns]
        by_module = modules.groupby("module", observed=True)[["pkts", "batches"]].sum()
        by_module = by_module[by_module.batches > 0]
        by_flow = flows.groupby("flow", observed=True)
        values["batch"] = (by_module.pkts / by_module.batches).to_dict()
        sums = by_flow[["pkts", "period_ns"]].sum()
        left = 1 - stalls.stall_rate_per_s * statistics.fmean(stalls.stall_lengths_ns or [0]) / 1e9
        values["rate"] = (sums.pkts / sums.period_ns * 1e9 / left).to_dict()
        values[name] = by_flow["delay_ns"].median().to_dict()
    return values


def differences(real: Values, model: Values) -> Values:
    """Simulated over measured, minus 1."""
    return {
        quantity: {
            name: model[quantity][name] / value - 1
            for name, value in real[quantity].items()
            if value and name in model[quantity]
        }
        for quantity in REPORTED
    }


def measure(case: str, costs: Path, runs: int, seconds: float) -> dict[str, Any]:
    """One row: for each quantity the median over runs of the median subject, and the worst case."""
    name, params, trigger = CASES[case]
    document = loaded(name, params)
    good = []
    tries = 0
    after = profile_of(document)
    while len(good) < runs and tries < runs * MAX_TRIES:
        tries += 1
        before = after
        run = measured(document, trigger, seconds)
        after = profile_of(document)
        if run is None or not are_alike(before, after):
            continue
        models = [
            simulated(document, trigger, costs, profile, run[2]) for profile in (before, after)
        ]
        good.append((run[0], mean_of(*models), run[1]))
    row: dict[str, Any] = {"case": case, "runs": len(good), "of_runs": tries}
    if not good:
        return row
    row["calm_share"] = statistics.median(share for _, _, share in good)
    found = [differences(real, model) for real, model, _ in good]
    for quantity in REPORTED:
        subjects = [one[quantity] for one in found if one[quantity]]
        medians = [statistics.median(one.values()) for one in subjects]
        row[quantity] = statistics.median(medians) if medians else None
        row[f"{quantity}_worst"] = max(
            (value for one in subjects for value in one.values()), key=abs, default=None
        )
    row["measured_pps"] = statistics.median(sum(real["rate"].values()) for real, _, _ in good)
    row["simulated_pps"] = statistics.median(sum(model["rate"].values()) for _, model, _ in good)
    return row


def show(row: dict[str, Any]) -> str:
    """The row as one line of a table."""

    def share(name: str) -> str:
        value = row[name]
        if value is None:
            return "      -"
        mark = "*" if name in LIMITS and abs(value) > LIMITS[name] else " "
        return f"{value:+6.1%}{mark}"

    if not row["runs"]:
        return f"{row['case']:26} the machine was never calm for {MIN_CALM} periods"
    rates = f"{row['measured_pps'] / 1e6:6.2f} {row['simulated_pps'] / 1e6:6.2f}"
    runs = f"{row['runs']}/{row['of_runs']} {row['calm_share']:4.0%}"
    return f"{row['case']:26} {rates} {' '.join(share(name) for name in REPORTED)}  {runs}"


def main() -> int:
    """Prints the table; with --out writes it."""
    parser = argparse.ArgumentParser(description="the daemon and the simulator side by side")
    parser.add_argument("cases", nargs="*", help="names as in the table; all when none is given")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each percentile")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = wanted_cases(parser, options.cases, CASES)
    print(
        f"{'case':26} {'Mpps':>6} {'sim.':>6} "
        + " ".join(f"{name:>7}" for name in REPORTED)
        + "  runs, calm periods"
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            rows.append(measure(case, Path(folder) / "costs.json", options.runs, options.seconds))
            print(show(rows[-1]), flush=True)
    print("differences: simulated over measured, the median module or flow; * = beyond its limit")
    write_rows(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
