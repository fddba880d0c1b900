#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""violations.py - the share of control periods in which a controller breaks an SLO, by flow.

usage: bench/violations.py [--periods 2000] [--controller optimal] [--out FILE.json] [CASE...]

The daemon runs each case under the controller for that many periods of 10 ms, after some to settle.
A period is violated for a flow if more of its packets are late than the percentile (p95) allows.
The table has both counts, with and without stalls: a period counts as stalled if it met the SLO
apart from packets that were inside while the machine held a worker up for more than 5 % of the SLO,
or that came before the ring had drained. SLOs are a share (--slo-share, default 0.8) of the p95 of
`max` on the same machine in the same minute, or fixed ones (--slo 60us).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from case_daemon import ROOT, loaded, on_daemon
from case_rows import wanted_cases, write_rows

sys.path.insert(0, str(ROOT / "python"))

from batchplane.base.units import parse_duration_ns, short_duration, short_rate
from batchplane.commands.change import change
from batchplane.control.options import ControlOptions
from batchplane.daemon.client import Client
from batchplane.daemon.process import Daemon

PERIOD_S = 0.01
SETTLE_S = 0.5
LIMIT = 0.005  # of periods, stalls excluded

# Name -> pipeline, its parameters. All saturated: the hardest load for an SLO.
CASES: dict[str, tuple[str, list[str]]] = {
    "l2l3(16)": ("l2l3", ["nexthops=16", "saturate=true"]),
    "gateway(16)": ("gateway", ["nexthops=16", "saturate=true"]),
    "gateway(64)": ("gateway", ["nexthops=64", "saturate=true"]),
    "vrf(2,4)": ("vrf", ["vrfs=2", "nexthops=4", "saturate=true"]),
}


def counted(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each flow with an SLO: its periods, the violated ones, and both without stalls."""
    found = []
    for row in rows:
        if not row["slo_ns"] or not row.get("periods"):
            continue
        violated, stalled = int(row["violated_periods"]), int(row["stalled_periods"])
        # Both numbers leave out stalled periods, whose result without the stall is unknown.
        rest = max(int(row["periods"]) - stalled, 1)
        found.append(
            {
                "flow": row["flow"],
                "slo_ns": row["slo_ns"],
                "periods": row["periods"],
                "violated": violated,
                "stalled": stalled,
                "violated_ratio": violated / row["periods"],
                "unstalled_ratio": (violated - stalled) / rest,
                "excess_ratio": row.get("excess_ratio"),
                "late_ratio": row["late_ratio"],
            }
        )
    return found


def worst(flows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The flow that broke its SLO in the largest share of periods without a stall."""
    return max(flows, key=lambda flow: (flow["unstalled_ratio"], flow["violated_ratio"]))


def words_of_slo(slo_ns: float) -> str:
    return f"*.slo={round(slo_ns)}ns"


def measured_slo_ns(client: Client, daemon: Daemon, share: float) -> float:
    """A share of the p95 of `max`: the mean over flows, as in the papers."""
    change(daemon, ["controller=max"])
    time.sleep(SETTLE_S)
    mean_ns = 1e6
    # Delays are counted in parts of the SLO: exact only close to it.
    for _ in range(3):
        change(daemon, [words_of_slo(mean_ns)])
        time.sleep(1)
        p95_ns = [row["counted"]["p95_ns"] for row in client.show("slo") if row.get("counted")]
        mean_ns = sum(p95_ns) / len(p95_ns)
    return share * mean_ns


def measure(case: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs one case and returns the results of every flow."""
    name, params = CASES[case]
    document = loaded(name, params)
    control = ControlOptions(options.controller, costs=options.costs)
    with on_daemon(document, f"violations_{name}", control) as (daemon, client):
        slo_ns = (
            float(parse_duration_ns(options.slo) or 0)
            if options.slo
            else measured_slo_ns(client, daemon, options.slo_share)
        )
        words = [f"controller={options.controller}", words_of_slo(slo_ns)]
        if options.costs:
            words.append(f"controller.costs={options.costs}")
        change(daemon, words, document.pipeline)
        time.sleep(SETTLE_S)
        change(daemon, [words_of_slo(slo_ns)])  # resets the counters
        first = client.show("runtime")
        time.sleep(options.periods * PERIOD_S)
        last, rows = client.show("runtime"), client.show("slo")
        steps = client.show("control")
    elapsed_ns = last["now_ns"] - first["now_ns"]
    gaps_ns = last["workers"][0]["gaps"]["sum_ns"] - first["workers"][0]["gaps"]["sum_ns"]
    sent = last["balance"]["sent_pkts"] - first["balance"]["sent_pkts"]
    return {
        "case": case,
        "controller": options.controller,
        "slo_ns": slo_ns,
        "rate_pps": sent / elapsed_ns * 1e9,
        "held_up_ratio": gaps_ns / elapsed_ns,
        "step_ns": steps["step_ns"],
        "worker_ratio": steps["worker_ratio"],
        "flows": counted(rows),
    }


def show(row: dict[str, Any]) -> str:
    """The row as one line of a table."""
    flow = worst(row["flows"])
    verdict = "reached" if flow["unstalled_ratio"] <= LIMIT else "missed"
    excess = "-" if flow["excess_ratio"] is None else f"{flow['excess_ratio']:.1%}"
    return (
        f"{row['case']:14} {row['controller']:10} {short_duration(row['slo_ns']):>8} "
        f"{short_rate(row['rate_pps']):>10} {row['held_up_ratio']:8.1%} {flow['periods']:8} "
        f"{flow['violated_ratio']:9.2%} {flow['unstalled_ratio']:9.2%} {excess:>8}  {verdict}"
    )


def main() -> int:
    """Prints the table; with --out writes it."""
    parser = argparse.ArgumentParser(description="control periods in which a promise is broken")
    parser.add_argument("cases", nargs="*", help="names as in the table; all when none is given")
    parser.add_argument("--periods", type=int, default=2000)
    parser.add_argument("--controller", default="optimal")
    parser.add_argument("--costs", help="module costs (default: the saved profile, or measure now)")
    parser.add_argument("--slo", help="of every flow, such as 60us")
    parser.add_argument("--slo-share", type=float, default=0.8)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = wanted_cases(parser, options.cases, CASES)
    if options.slo and not parse_duration_ns(options.slo):
        parser.error(f"'{options.slo}' is no duration: 60us")
    print(
        f"{'case':14} {'controller':10} {'SLO':>8} {'rate':>10} {'held up':>8} {'periods':>8} "
        f"{'violated':>9} {'unstalled':>9} {'excess':>8}  <= {LIMIT:.1%}"
    )
    rows = []
    for case in cases:
        rows.append(measure(case, options))
        print(show(rows[-1]), flush=True)
    print("of the worst flow; violated: of all periods, unstalled: of those without a stall")
    write_rows(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
