#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py - runs all benchmarks, prints one table with intervals and verdicts, and writes JSON.

usage: run.py [--quick | --smoke] [--only NAME,...] [--build DIR] [--out DIR]
Writes OUT/bench.json (everything), OUT/cost_table.json (module costs, for simulator and controller)
and OUT/NAME.json for each benchmark. Exit code 1 if a benchmark fails; a missed target does not
count as a failure.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import figures

ROOT = Path(__file__).resolve().parent.parent
BUSY_LOAD = 1.5
FEWEST_TRIALS = "3"
FEWEST_BATCHES = "5"


@dataclass(frozen=True)
class Benchmark:
    """A program, what it shows, and its trials if time is short."""

    name: str
    shows: str
    quick_trials: int
    seconds: int  # estimated, for the line that announces it
    smoke_only: str = ""  # the cases of --smoke; empty: all


BENCHMARKS = [
    Benchmark("l2l3", "the L2/L3 router against a hand-inlined loop and rte_graph", 300, 20),
    Benchmark("gateway", "the gateway pipelines, unbuffered and with triggers of 32", 60, 20),
    Benchmark("hop", "the engine's hop to a module that does nothing", 100, 12),
    Benchmark("modules", "every module by batch size, and the cost table", 40, 60, "ttl"),
    Benchmark("scatter", "dealing a batch out to gates", 40, 12),
    Benchmark("mac_check", "seeing whether frames are for the interface", 100, 5),
    Benchmark("buffering", "fractional buffers", 100, 25),
    Benchmark("esp", "IPsec tunnels over the cryptography alone", 20, 15, "gcm, 64"),
    Benchmark("rte_ipsec", "IPsec tunnels beside DPDK's", 5, 60, "gcm, 64 B"),
    Benchmark("offload", "batches to a thread on another core and back", 10, 10, "batches of 256"),
    Benchmark(
        "placement", "one decision about devices, and how good it is", 20, 2, "2 applications"
    ),
    Benchmark("inspect", "literals and digests of many packets at once", 10, 20, "64 B, digest"),
    Benchmark("egress", "packet schedulers by number of flows", 20, 15, "32 flows"),
    Benchmark("egress_tree", "a scheduler of subscribers and classes", 20, 15, "32 x 4"),
    Benchmark("egress_tree_file", "a large tree from a file, and changes of it", 3, 5),
    Benchmark("egress_arbiter", "decisions a second of a whole arbiter", 10, 15, "32 flows"),
    Benchmark("rte_sched", "packet schedulers beside DPDK's", 30, 20, "32 flows"),
    Benchmark("handover", "from the generator's core to the worker's", 40, 15),
    Benchmark("two_workers", "a router over two workers by size of the ring", 20, 15),
    Benchmark("early_drop", "a flood dropped at the scheduler or at the first module", 10, 15),
    Benchmark("statistics", "reading all statistics 100 times a second", 5, 65),
    Benchmark("tables", "route changes under load", 3, 15),
    Benchmark("simulator", "how fast virtual time runs", 40, 10),
    Benchmark("controller", "one step of the optimal controller", 40, 10),
    Benchmark(
        "live_replace", "what replacing large tables costs a worker under load", 3, 60, "1 access"
    ),
]


def chosen(only: str) -> list[Benchmark]:
    """The benchmarks named, in the usual order; exits if one is unknown."""
    if not only:
        return BENCHMARKS
    wanted = only.split(",")
    known = [b.name for b in BENCHMARKS]
    for name in wanted:
        if name not in known:
            sys.exit(f"run.py: there is no benchmark '{name}'; choose from {', '.join(known)}")
    return [b for b in BENCHMARKS if b.name in wanted]


def commit() -> str:
    """The commit of the tree, marked if files differ from it."""
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    return run.stdout.strip() if run.returncode == 0 else "unknown"


def options_of(benchmark: Benchmark, effort: str) -> list[str]:
    """A program's options for an effort: `full`, `quick` or `smoke`."""
    if effort == "quick":
        return ["--trials", str(benchmark.quick_trials)]
    if effort == "smoke":
        only = ["--only", benchmark.smoke_only] if benchmark.smoke_only else []
        return ["--trials", FEWEST_TRIALS, "--batches", FEWEST_BATCHES, *only]
    return []


def run_one(benchmark: Benchmark, build: Path, out: Path, effort: str) -> figures.Json | None:
    """Runs one program, whose output goes to the terminal; None if it failed."""
    program = build / "bench" / f"bench_{benchmark.name}"
    if not program.exists():
        print(f"run.py: {program} is missing: tools/build.sh release all makes it", flush=True)
        return None
    path = out / f"{benchmark.name}.json"
    path.unlink(missing_ok=True)
    command = [str(program), "--json", str(path), *options_of(benchmark, effort)]
    print(f"\n== {benchmark.name}: {benchmark.shows} (about {benchmark.seconds} s)", flush=True)
    if subprocess.run(command, cwd=ROOT).returncode != 0 or not path.exists():
        print(f"run.py: {benchmark.name} failed", flush=True)
        return None
    result: figures.Json = json.loads(path.read_text())
    return result


def write_all(results: dict[str, figures.Json], head: figures.Json, out: Path) -> figures.Json:
    """Writes the merged document and, if modules were measured, the cost table."""
    merged = figures.merge(results, head)
    (out / "bench.json").write_text(json.dumps(merged, indent=1) + "\n")
    if "modules" in results:
        table = figures.cost_table(results["modules"], results.get("hop"))
        (out / "cost_table.json").write_text(json.dumps(table, indent=1) + "\n")
    return merged


def print_table(results: dict[str, figures.Json], merged: figures.Json) -> None:
    """Figures with a target first, then the others."""
    everything = figures.figures_of(results)
    judged = [figures.figure_row(n, f) for n, f in everything if "verdict" in f]
    others = [figures.figure_row(n, f) for n, f in everything if "verdict" not in f]
    print(f"\n{merged['cpu']}, commit {merged['commit']}, load {merged['load_before']}\n")
    for rows in (judged, others):
        if rows:
            print("\n".join(figures.table(rows)) + "\n")
    counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(merged["verdicts"].items()))
    print(f"targets: {counts or 'none measured'} (open: the interval includes the target)")


def effort_of(args: argparse.Namespace) -> str:
    """The effort that the flags select."""
    return "smoke" if args.smoke else "quick" if args.quick else "full"


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Run the benchmarks and print one table.")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="fewer trials: about a minute")
    effort.add_argument(
        "--smoke",
        action="store_true",
        help="only see that each one works: its figures mean nothing",
    )
    parser.add_argument("--only", default="", help="names, comma-separated")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build folder")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out", help="where JSON goes")
    args = parser.parse_args()
    benchmarks = chosen(args.only)
    args.out.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    if load > BUSY_LOAD and not args.smoke:
        print(f"run.py: the machine is busy (load {load:.1f}): times will come out too long")
    head: figures.Json = {
        "commit": commit(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load_before": round(load, 1),
        "effort": effort_of(args),
    }
    results = {}
    failed = []
    for benchmark in benchmarks:
        result = run_one(benchmark, args.build, args.out, effort_of(args))
        if result is None:
            failed.append(benchmark.name)
        else:
            results[benchmark.name] = result
    if results:
        print_table(results, write_all(results, head, args.out))
        print(f"written: {args.out}/bench.json")
    if failed:
        print(f"run.py: failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
