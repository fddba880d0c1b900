#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare.py - compares this tree's benchmarks with a commit's, with a verdict per figure.

usage: compare.py REF [--rounds N] [--trials N] [--benchmarks NAME,...] [--only TEXT]
                  [--build DIR] [--old-build DIR]
The commit is built in a temporary work tree. Each round runs old and new one after the other; the
order alternates, so that a slow spell of the machine affects both. A figure is slower or faster if
the 95 % interval of new over old is more than 1 % away from 1. Exit code 1 if a figure is slower.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import figures

ROOT = Path(__file__).resolve().parent.parent
# Trials per run of each benchmark: enough to last half a second.
TRIALS = {"l2l3": 200, "gateway": 100, "hop": 200, "modules": 24}
NAMES = list(TRIALS)
# Fewer rounds give no 95 % interval, whatever the values.
MIN_ROUNDS = 6


def build_commit(ref: str, folder: Path) -> Path:
    """Checks the commit out below `folder` and builds its benchmarks; returns the build folder."""
    tree, build = folder / "tree", folder / "build"
    subprocess.run(
        ["git", "worktree", "add", "--quiet", "--detach", str(tree), ref], cwd=ROOT, check=True
    )
    print(f"compare.py: building {ref} (some minutes)", flush=True)
    subprocess.run(
        ["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(build), "--log-level=WARNING",
         "-DCMAKE_BUILD_TYPE=Release", "-DBATCHPLANE_TESTS=OFF", "-DBATCHPLANE_BENCH=ON"],
        check=True,
    )  # fmt: skip
    known = subprocess.run(
        ["ninja", "-C", str(build), "-t", "targets", "all"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    targets = [f"bench_{name}" for name in NAMES if f"\nbench_{name}:" in "\n" + known]
    if not targets:
        sys.exit(f"compare.py: {ref} has none of the benchmarks {', '.join(NAMES)}")
    subprocess.run(["ninja", "-C", str(build), "--quiet", *targets], check=True)
    return build


def measure(build: Path, name: str, args: argparse.Namespace, out: Path) -> figures.Json:
    """One short run of one benchmark."""
    command = [str(build / "bench" / f"bench_{name}"), "--trials", str(args.trials or TRIALS[name])]
    command += ["--json", str(out)]
    if args.only:
        command += ["--only", args.only]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"compare.py: {command[0]} failed: {run.stderr.strip()}")
    result: figures.Json = json.loads(out.read_text())
    return result


def compare(name: str, old: Path, new: Path, args: argparse.Namespace, folder: Path) -> bool:
    """Prints the rows of one benchmark; true if one is slower."""
    rounds = []
    for i in range(args.rounds):
        order = [("old", old), ("new", new)]
        if i % 2 == 1:
            order.reverse()
        found = {
            side: measure(build, name, args, folder / f"{name}_{side}.json")
            for side, build in order
        }
        rounds.append((found["old"], found["new"]))
        print(f"\r{name}: round {i + 1} of {args.rounds} ", end="", flush=True)
    rows = figures.compare_rounds(rounds)
    print()
    if not rows:
        print("nothing to compare\n")
        return False
    head = ["figure", "value", "95 % interval", "verdict"]
    print("\n".join(figures.table(
        [[label, f"{r.value:.3f}", f"[{r.low:.3f}, {r.high:.3f}]", verdict]
         for label, r, verdict in rows], head)) + "\n")  # fmt: skip
    return any(verdict == "slower" for _, _, verdict in rows)


def chosen(names: str) -> list[str]:
    """The benchmarks named; exits if one of them cannot be compared."""
    wanted = names.split(",")
    for name in wanted:
        if name not in NAMES:
            sys.exit(f"compare.py: '{name}' is not compared; choose from {', '.join(NAMES)}")
    return wanted


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Compare this tree's speed with a commit's.")
    parser.add_argument("ref", help="commit, branch or tag")
    parser.add_argument("--rounds", type=int, default=12, help="of old and new in turn")
    parser.add_argument("--trials", type=int, default=0, help="within each run")
    parser.add_argument("--only", default="", help="part of a figure's name")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="of this tree")
    parser.add_argument("--old-build", type=Path, help="where the commit is built already")
    parser.add_argument("--benchmarks", default=",".join(NAMES), help="which, comma-separated")
    args = parser.parse_args()
    if args.rounds < MIN_ROUNDS:
        sys.exit(f"compare.py: at least {MIN_ROUNDS} rounds are needed for an interval")
    is_slower = False
    with tempfile.TemporaryDirectory(prefix="bench_compare_") as name:
        folder = Path(name)
        try:
            old = args.old_build or build_commit(args.ref, folder)
            for benchmark in chosen(args.benchmarks):
                program = f"bench/bench_{benchmark}"
                if not ((old / program).exists() and (args.build / program).exists()):
                    print(f"{benchmark}: not in both trees, left out")
                    continue
                is_slower |= compare(benchmark, old, args.build, args, folder)
        except subprocess.CalledProcessError as error:
            sys.exit(f"compare.py: {' '.join(error.cmd[:3])} ... failed with {error.returncode}")
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(folder / "tree")],
                cwd=ROOT, capture_output=True,
            )  # fmt: skip
    print("new over old: " + ("something is slower" if is_slower else "nothing is slower"))
    return 1 if is_slower else 0


if __name__ == "__main__":
    sys.exit(main())
