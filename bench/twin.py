#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""twin.py - daemon and simulator side by side: how far the simulation is from what is measured.

usage: bench/twin.py [--runs 5] [--seconds 2] [--out FILE.json] [CASE...]

Each case is profiled first, on the same machine and in the same minute; then the daemon runs it
several times, each time with its simulated twin. Told are medians over runs, modules and flows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "batchplane"]

# Name -> pipeline, its parameters. Saturated ones show the rate; the others, at a load that leaves
# the worker idle at times, the delays.
CASES: dict[str, tuple[str, list[str]]] = {
    "simple": ("simple", ["rate_pps=1000000"]),
    "simple, trigger 16": ("simple", ["saturate=true", "trigger=16"]),
    "tree": ("tree", []),
    "robot_control(16), null": ("robot_control", ["n=16", "trigger=0"]),
    "robot_control(16), 32": ("robot_control", ["n=16", "trigger=32"]),
    "l2l3(16)": ("l2l3", ["nexthops=16", "saturate=true"]),
    "l2l3(16), trigger 32": ("l2l3", ["nexthops=16", "saturate=true", "trigger=32"]),
    "gateway(16)": ("gateway", ["nexthops=16", "saturate=true"]),
    "gateway(16), trigger 32": ("gateway", ["nexthops=16", "saturate=true", "trigger=32"]),
    "gateway(16), 4 Mpps": ("gateway", ["nexthops=16", "rate_pps=4000000", "trigger=8"]),
    "vrf(2,4)": ("vrf", ["vrfs=2", "nexthops=4", "saturate=true"]),
}
# Allowed difference of each quantity, for the verdict.
LIMITS = {"batch": 0.03, "rate": 0.10, "p50": 0.10, "p95": 0.15}
REPORTED = ("batch", "rate", "p50", "p95", "p99")


def call(*words: str) -> Any:
    """Runs the command line of this tree; its JSON."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, cwd=ROOT, env=env, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"batchplane {' '.join(words)} failed:\n{done.stderr}")
    return json.loads(done.stdout) if "--json" in words else None


def held_up_share(run: dict[str, Any]) -> float:
    """Share of the run in which the machine held its worker up."""
    worker = run["snapshot"]["runtime"]["workers"][0]
    return float(worker["gaps"]["sum_ns"]) / (run["interval_s"] * 1e9)


def differences(run: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Quantity -> subject -> how much more the simulation says."""
    found: dict[str, dict[str, float]] = {name: {} for name in REPORTED}
    for pair in run["beside"]:
        name = "rate" if pair["quantity"].startswith("rate") else pair["quantity"]
        if name not in found or pair["difference"] is None:
            continue
        if pair["quantity"] == "rate in" or pair["measured"] == 0:
            continue
        found[name][pair["subject"]] = pair["difference"]
    return found


def measure(case: str, costs: Path, runs: int, seconds: float) -> dict[str, Any]:
    """One row: per quantity the median over runs of the mean and of the worst subject."""
    pipeline, params = CASES[case]
    call("profile", "--pipeline", pipeline, *_params(params), "--out", str(costs), "--quick")
    taken = []
    for _ in range(runs):
        words = ["run", pipeline, *params, "--simulate", str(costs)]
        taken.append(call(*words, "--duration", str(seconds), "--json"))
    # Half of the runs, those that the machine disturbed least.
    taken.sort(key=held_up_share)
    calm = taken[: max(1, (runs + 1) // 2)]
    row: dict[str, Any] = {"case": case, "held_up": held_up_share(calm[-1])}
    for name in REPORTED:
        means, worst = [], []
        for run in calm:
            values = list(differences(run)[name].values())
            if not values:
                continue
            means.append(statistics.median(values))
            worst.append(max(values, key=abs))
        row[name] = statistics.median(means) if means else None
        row[f"{name}_worst"] = max(worst, key=abs) if worst else None
    row["measured_pps"] = statistics.median(run["out_pps"] for run in calm)
    row["simulated_pps"] = statistics.median(run["simulated"]["out_pps"] for run in calm)
    return row


def _params(params: list[str]) -> list[str]:
    return [word for param in params for word in ("--param", param)]


def show(row: dict[str, Any]) -> str:
    """The row as one line of a table."""

    def share(name: str) -> str:
        value = row[name]
        if value is None:
            return "      -"
        mark = "*" if name in LIMITS and abs(value) > LIMITS[name] else " "
        return f"{value:+6.1%}{mark}"

    rates = f"{row['measured_pps'] / 1e6:6.2f} {row['simulated_pps'] / 1e6:6.2f}"
    return f"{row['case']:26} {rates} " + " ".join(share(name) for name in REPORTED)


def main() -> int:
    """Prints the table; with --out writes it."""
    parser = argparse.ArgumentParser(description="the daemon and the simulator side by side")
    parser.add_argument("cases", nargs="*", help="names as in the table; all when none is given")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    unknown = [case for case in options.cases if case not in CASES]
    if unknown:
        parser.error(f"no case '{unknown[0]}': one of {', '.join(CASES)}")
    print(f"{'case':26} {'Mpps':>6} {'sim.':>6} " + " ".join(f"{name:>7}" for name in REPORTED))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases or CASES:
            rows.append(measure(case, Path(folder) / "costs.json", options.runs, options.seconds))
            print(show(rows[-1]), flush=True)
    print("differences: simulated over measured, the median module or flow; * = beyond its limit")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
