#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""oracle.py - controllers compared with the best fixed triggers that a search in the simulator
finds.

usage: bench/oracle.py TABLE [options] [CONTROLLER...]       a table: a module of bench/oracle_cases

Everything runs in virtual time on one simulated core, with the costs in bench/costs. The search
(tests/python/fixed_triggers.py) uses only the simulator. Each row has the fixed triggers' rate and,
for each controller, its rate relative to theirs, the share of periods in which the worst flow broke
its SLO, once settled, and the first period from which its rate is within 2 % of its mean.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

from case_rows import wanted_cases  # noqa: E402
from oracle_cases import load, noise, random_trees, report, saturated, shared, stairs  # noqa: E402
from oracle_cases.pipelines import CASES  # noqa: E402

TABLES: dict[str, ModuleType] = {
    "saturated": saturated,
    "noise": noise,
    "shared": shared,
    "load": load,
    "random": random_trees,
    "stairs": stairs,
}


def options_from(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    tables = "\n".join(
        f"  {name:10} {(module.__doc__ or '').split(' - ')[1].splitlines()[0]} ({module.TAKES})"
        for name, module in TABLES.items()
    )
    parser = argparse.ArgumentParser(
        description=f"{(__doc__ or '').splitlines()[0]}\n\ntables (on one core):\n{tables}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("controllers", nargs="*", default=["optimal"], metavar="CONTROLLER")
    parser.add_argument("--cases", type=lambda text: text.split(";"), help="pipelines: A;B")
    parser.add_argument("--slos", type=int, help="how many SLOs of each pipeline")
    parser.add_argument("--periods", type=int, help="how many periods count")
    parser.add_argument("--strength", type=float, default=1, help="noise: times as much")
    parser.add_argument("--pipelines", type=int, default=30, help="random: how many")
    parser.add_argument("--first", type=int, default=0, help="random: seed of the first")
    parser.add_argument("--costs", help="costs of another machine, such as epyc (not for random)")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_intermixed_args(arguments)
    table = TABLES[options.table]
    if table is random_trees and options.cases:
        parser.error("random makes its pipelines itself and has no cases")
    given = wanted_cases(parser, options.cases or (), CASES)
    options.cases = list(given if options.cases else getattr(table, "PIPELINES", CASES))
    return options


def main() -> int:
    """Prints the rows of a table as they come, then a line for each controller."""
    options = options_from()
    table = TABLES[options.table]
    points = table.points(options)
    line = getattr(table, "line", report.line)
    summary = getattr(table, "summary", report.summary)
    rows: list[report.Row] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for found in pool.map(table.compared, points, [options] * len(points)):
            rows += found
            print(*map(line, found), sep="\n", flush=True)
    for name in options.controllers:
        print(summary(name, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
