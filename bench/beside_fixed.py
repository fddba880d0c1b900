#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""beside_fixed.py - the daemon under a controller, in turns with fixed triggers.

usage: bench/beside_fixed.py [--slos 6] [--rounds 4] [--seconds 1] [--controller optimal]
                             [--costs FILE] [--out FILE.json] [CASE...]

Each case is saturated. First every `fixed(k)` runs for a moment: the SLOs lie evenly between the
p95 without buffers and that of full batches. At each SLO the controller then takes turns with the
largest triggers that kept it, and with 0.5 to 0.9 of these. Rates leave out the time that the
machine took away, and periods in which it held a worker up do not count as violated. The best fixed
triggers are the fastest of those that violate at most 0.5 % of the periods, or no more than the
controller does; a ratio is the median over rounds. Two things speak against the controller: it
starts anew in each of its turns, and the best triggers are chosen by the runs that count.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import violations
from case_daemon import ROOT, loaded, on_daemon
from case_rows import wanted_cases, write_rows
from violations import words_of_slo

sys.path.insert(0, str(ROOT / "python"))

from batchplane.base.units import short_duration, short_rate
from batchplane.commands.change import change
from batchplane.control.options import ControlOptions
from batchplane.daemon.client import Client
from batchplane.daemon.process import Daemon

TRIGGERS = (0, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32)
SHARES = (0.5, 0.65, 0.8, 0.9, 1.0)
LOOK_S = 0.4
SETTLE_S = 0.3
CASES: dict[str, tuple[str, list[str]]] = {
    "gateway(16)": ("gateway", ["nexthops=16", "saturate=true"]),
    "gateway(64)": ("gateway", ["nexthops=64", "saturate=true"]),
    "vrf(4,8)": ("vrf", ["vrfs=4", "nexthops=8", "saturate=true"]),
    "mgw(2,4)": ("mgw", ["bearers=2", "users=4", "saturate=true"]),
}
Json = dict[str, Any]


class Bed:
    """A daemon with a saturated pipeline, whose controller and SLO are changed live."""

    def __init__(self, daemon: Daemon, client: Client, spec: Any, costs: str | None = None) -> None:
        self._daemon, self._client, self._spec, self._costs = daemon, client, spec, costs

    def use(self, controller: str, slo_ns: float) -> None:
        """Changes both and lets the controller settle."""
        words = [f"controller={controller}", words_of_slo(slo_ns)]
        if self._costs and not controller.startswith("fixed("):
            words.append(f"controller.costs={self._costs}")
        change(self._daemon, words, self._spec)
        time.sleep(SETTLE_S)

    def measure(self, slo_ns: float, seconds: float) -> Json:
        """The rate, and how often the worst flow was late, over some time from now on."""
        change(self._daemon, [words_of_slo(slo_ns)])  # resets the counters
        first = self._client.show("runtime")
        time.sleep(seconds)
        last, rows = self._client.show("runtime"), self._client.show("slo")
        ran_ns = (last["now_ns"] - first["now_ns"]) - (_gaps_ns(last) - _gaps_ns(first))
        sent = last["balance"]["sent_pkts"] - first["balance"]["sent_pkts"]
        flow = violations.worst(violations.counted(rows))
        return {
            "rate_pps": sent / ran_ns * 1e9,
            "violated": flow["violated"] - flow["stalled"],
            "periods": flow["periods"] - flow["stalled"],
            "p95_ns": max(row["counted"]["p95_ns"] for row in rows if row.get("counted")),
        }

    def p95_ns(self, controller: str, guess_ns: float) -> float:
        """The p95 of a controller: delays are counted in parts of the SLO, exact only near it."""
        self.use(controller, guess_ns)
        for _ in range(2):
            guess_ns = float(self.measure(guess_ns, LOOK_S)["p95_ns"])
        return guess_ns


def _gaps_ns(runtime: Json) -> float:
    (worker,) = runtime["workers"]
    return float(worker["gaps"]["sum_ns"])


def ratio_of(rows: Sequence[Json]) -> float:
    """Violated periods over all."""
    periods = sum(int(row["periods"]) for row in rows)
    return sum(int(row["violated"]) for row in rows) / max(periods, 1)


def one_slo(bed: Bed, slo_ns: float, fixed: dict[int, float], options: argparse.Namespace) -> Json:
    """Runs the controller and its rivals in turns at one SLO."""
    most = max((k for k, p95_ns in fixed.items() if p95_ns <= slo_ns), default=0)
    # A machine that changes its speed keeps an SLO only with triggers below those.
    near = (min(fixed, key=lambda k: abs(k - share * most)) for share in SHARES)
    rivals = [f"fixed({k})" for k in dict.fromkeys(near)]
    names = [options.controller, *rivals]
    rows: dict[str, list[Json]] = {name: [] for name in names}
    bed.use(options.controller, slo_ns)
    time.sleep(SETTLE_S)
    for _ in range(options.rounds):
        for name in names:
            bed.use(name, slo_ns)
            rows[name].append(bed.measure(slo_ns, options.seconds))
    own = ratio_of(rows[options.controller])
    fair = [r for r in rivals if ratio_of(rows[r]) <= max(own, violations.LIMIT)]
    rate = {n: statistics.median(row["rate_pps"] for row in of) for n, of in rows.items()}
    # Where no triggers are late seldom enough, those that are late least count.
    best = (
        max(fair, key=lambda r: rate[r]) if fair else min(rivals, key=lambda r: ratio_of(rows[r]))
    )
    pairs = zip(rows[options.controller], rows[best], strict=True)
    return {
        "slo_ns": slo_ns,
        "best": best,
        "rate_pps": rate[options.controller],
        "best_pps": rate[best],
        "ratio": statistics.median(a["rate_pps"] / b["rate_pps"] for a, b in pairs),
        "violated": own,
        "best_violated": ratio_of(rows[best]),
    }


def measure(case: str, options: argparse.Namespace) -> list[Json]:
    """All SLOs of one case."""
    name, params = CASES[case]
    document = loaded(name, params)
    control = ControlOptions(options.controller, costs=options.costs)
    found = []
    with on_daemon(document, f"beside_{name}", control) as (daemon, client):
        bed = Bed(daemon, client, document.pipeline, options.costs)
        fixed: dict[int, float] = {}
        guess_ns = 50_000.0
        for k in TRIGGERS:
            fixed[k] = guess_ns = bed.p95_ns(f"fixed({k})", guess_ns)
        least, most = fixed[0], fixed[32]
        for i in range(options.slos):
            slo_ns = least * 1.05 + (most * 1.02 - least * 1.05) * i / max(options.slos - 1, 1)
            found.append({"case": case, **one_slo(bed, slo_ns, fixed, options)})
            print(show(found[-1]), flush=True)
    return found


def show(row: Json) -> str:
    """The row as one line of a table."""
    return (
        f"{row['case']:12} {short_duration(row['slo_ns']):>9} {short_rate(row['rate_pps']):>10} "
        f"{row['violated']:9.2%} {row['best']:>10} {short_rate(row['best_pps']):>10} "
        f"{row['best_violated']:9.2%} {row['ratio']:7.3f}"
    )


def main() -> int:
    """Prints the table; with --out writes it."""
    parser = argparse.ArgumentParser(description="a controller in turns with fixed triggers")
    parser.add_argument("cases", nargs="*", help="names as in the table; all when none is given")
    parser.add_argument("--slos", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--controller", default="optimal")
    parser.add_argument("--costs", help="module costs (default: the saved profile, or measure now)")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = wanted_cases(parser, options.cases, CASES)
    print(
        f"{'case':12} {'SLO':>9} {'rate':>10} {'violated':>9} {'best fixed':>10} {'rate':>10} "
        f"{'violated':>9} {'ratio':>7}"
    )
    rows = [row for case in cases for row in measure(case, options)]
    ratios = [row["ratio"] for row in rows]
    print(f"mean {statistics.mean(ratios):.3f}, least {min(ratios):.3f}")
    write_rows(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
