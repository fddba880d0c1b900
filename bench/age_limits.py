#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""age_limits.py - what age limits take where they come before triggers.

usage: bench/age_limits.py [--trigger 20] [--shares 1,0.9,0.7] [--rounds 4] [--seconds 1.5]
                           [--out FILE.json] [CASE...]

The daemon runs each case (those of beside_fixed.py) saturated with fixed triggers. Age limits are
shares of the p95 that these have without any, which takes turns with them. `rate` and `p95` are
over those of the same round without limits. A limit of 0.7 that costs nothing but its smaller
batches has a p95 of 0.7 and a run or two.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from beside_fixed import CASES, Bed
from case_daemon import ROOT, loaded, on_daemon
from case_rows import wanted_cases, write_rows

sys.path.insert(0, str(ROOT / "python"))

from batchplane.base.units import short_duration
from batchplane.commands.change import change
from batchplane.control.options import ControlOptions

NO_LIMIT = "1ms"
Json = dict[str, Any]


def limit_words(modules: Sequence[str], limit: str) -> list[str]:
    """The words of `set` that give all of these modules an age limit."""
    return [f"{module}.age_limit={limit}" for module in modules]


def row_of(share: float, rounds: Sequence[Mapping[float | None, Json]]) -> Json:
    """One share of the table: medians of the ratios to the same round without limits."""
    with_limit = [one[share] for one in rounds]
    without = [one[None] for one in rounds]
    pairs = list(zip(with_limit, without, strict=True))
    return {
        "share": share,
        "rate_ratio": statistics.median(a["rate_pps"] / b["rate_pps"] for a, b in pairs),
        "p95_ratio": statistics.median(a["p95_ns"] / b["p95_ns"] for a, b in pairs),
    }


def measure(case: str, options: argparse.Namespace) -> list[Json]:
    """All shares of one case."""
    name, params = CASES[case]
    document = loaded(name, params)
    fixed = f"fixed({options.trigger})"
    rounds: list[dict[float | None, Json]] = []
    with on_daemon(document, f"ages_{name}", ControlOptions(fixed)) as (daemon, client):
        bed = Bed(daemon, client, document.pipeline)
        p95_ns = bed.p95_ns(fixed, 50_000.0)
        held = [row["module"] for row in client.show("buffers")["buffers"] if row["trigger_pkts"]]
        for number in range(options.rounds):
            one: dict[float | None, Json] = {}
            turns: list[float | None] = [None, *options.shares]
            for share in turns if number % 2 == 0 else turns[::-1]:
                limit = NO_LIMIT if share is None else f"{round(share * p95_ns)}ns"
                change(daemon, limit_words(held, limit))
                one[share] = bed.measure(p95_ns, options.seconds)
            rounds.append(one)
    rows = [row_of(share, rounds) for share in options.shares]
    return [{"case": case, "trigger_pkts": options.trigger, "p95_ns": p95_ns, **r} for r in rows]


def show(row: Json) -> str:
    """The row as one line of a table."""
    return (
        f"{row['case']:12} {row['trigger_pkts']:7} {short_duration(row['p95_ns']):>9} "
        f"{row['share']:6.2f} {row['rate_ratio']:6.3f} {row['p95_ratio']:6.2f}"
    )


def main() -> int:
    """Prints the table; with --out writes it."""
    parser = argparse.ArgumentParser(description="what binding age limits take")
    parser.add_argument("cases", nargs="*", help="names as in the table; gateway(64) if none")
    parser.add_argument("--trigger", type=int, default=20)
    parser.add_argument("--shares", default="1,0.9,0.7")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.shares = [float(share) for share in options.shares.split(",")]
    cases = wanted_cases(parser, options.cases or ["gateway(64)"], CASES)
    print(f"{'case':12} {'trigger':>7} {'p95':>9} {'limit':>6} {'rate':>6} {'p95':>6}")
    rows: list[Json] = []
    for case in cases:
        for row in measure(case, options):
            rows.append(row)
            print(show(row), flush=True)
        write_rows(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
