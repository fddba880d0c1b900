#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sessions.py - the cost of many users for the whole mobile gateway.

usage: bench/sessions.py [--users 8,100000] [--rounds 3] [--out FILE.json] [KEY=VALUE...]

`mgw` with real=1 runs saturated with few and with many users, in turns; packets belong to random
users. Each round has stretches of 50 ms per controller; their median is the figure. Per packet sent
it prints the worker's whole time, minus what the machine took, and the part in which packets were
waiting. With many users the generator also has that many frames to fetch. So the first figure is
what a user sees, and the second one is the cost of the gateway itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from case_daemon import ROOT, loaded, on_daemon
from case_rows import write_rows

sys.path.insert(0, str(ROOT / "python"))

from batchplane.commands.change import change
from batchplane.control.options import ControlOptions

STRETCH_S = 0.05
SETTLE_S = 0.6
STRETCHES = 14  # of each controller and round
CONTROLLERS = ("null", "optimal")
LIMIT = 1.5  # relative to the cost of few users


def stretch(first: dict[str, Any], last: dict[str, Any]) -> tuple[float, float] | None:
    """ns per packet sent between two readings, of all time and of busy time, without the gaps in
    which the machine held the worker up. None if nothing was sent."""
    sent = last["balance"]["sent_pkts"] - first["balance"]["sent_pkts"]
    before, after = first["workers"][0], last["workers"][0]
    gaps_ns = after["gaps"]["sum_ns"] - before["gaps"]["sum_ns"]
    elapsed_ns = last["now_ns"] - first["now_ns"] - gaps_ns
    idle_ns = after["regimes_ns"]["idle"] - before["regimes_ns"]["idle"]
    if sent <= 0 or elapsed_ns <= 0:
        return None
    return elapsed_ns / sent, max(elapsed_ns - idle_ns, 0) / sent


def summary(stretches: Sequence[tuple[float, float]]) -> dict[str, float]:
    """The medians."""
    return {
        "ns_per_pkt": statistics.median(all_ns for all_ns, _ in stretches),
        "busy_ns_per_pkt": statistics.median(busy_ns for _, busy_ns in stretches),
        "stretches": len(stretches),
    }


def lines(found: dict[tuple[int, str], dict[str, float]], users: Sequence[int]) -> list[str]:
    """The table: many users next to few, with their relative cost."""
    few = users[0]
    text = []
    for controller in CONTROLLERS:
        base = found[few, controller]
        for n in users:
            row = found[n, controller]
            ratio = row["ns_per_pkt"] / base["ns_per_pkt"]
            busy = row["busy_ns_per_pkt"] / base["busy_ns_per_pkt"]
            verdict = "" if n == few else ("  reached" if ratio <= LIMIT else "  missed")
            text.append(
                f"{controller:10} {n:>8} {row['ns_per_pkt']:10.1f} {ratio:6.2f} "
                f"{row['busy_ns_per_pkt']:10.1f} {busy:6.2f}{verdict}"
            )
    return text


def measure(users: int, params: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """One run of the daemon: the stretches of each controller."""
    words = ["real=1", "saturate=true", "order=random", f"sessions={users}", *params]
    document = loaded("mgw", words)
    found: dict[str, list[tuple[float, float]]] = {}
    with on_daemon(document, "sessions_mgw", ControlOptions("null")) as (daemon, client):
        for controller in CONTROLLERS:
            change(daemon, [f"controller={controller}"], document.pipeline)
            time.sleep(SETTLE_S)
            first = client.show("runtime")
            for _ in range(STRETCHES):
                time.sleep(STRETCH_S)
                last = client.show("runtime")
                if (one := stretch(first, last)) is not None:
                    found.setdefault(controller, []).append(one)
                first = last
    return found


def users_of(text: str) -> list[int]:
    """Parses at least two numbers and sorts them."""
    try:
        users = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of users: 8,100000") from error
    if len(users) < 2 or min(users) < 1 or max(users) > 1_000_000:
        raise argparse.ArgumentTypeError(f"'{text}': at least two numbers from 1 to 1000000")
    return sorted(set(users))


def main() -> int:
    """Prints the table; with --out writes it."""
    parser = argparse.ArgumentParser(description="what many users cost the mobile gateway")
    parser.add_argument("params", nargs="*", help="of mgw, such as bearers=4")
    parser.add_argument("--users", type=users_of, default=[8, 100_000], help="default 8,100000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    all_stretches: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for _ in range(max(options.rounds, 1)):
        for n in options.users:
            for controller, stretches in measure(n, options.params).items():
                all_stretches.setdefault((n, controller), []).extend(stretches)
    found = {key: summary(stretches) for key, stretches in all_stretches.items()}
    print(f"{'controller':10} {'users':>8} {'ns':>10} {'times':>6} {'busy ns':>10} {'times':>6}")
    print("\n".join(lines(found, options.users)))
    print(f"wanted: at most {LIMIT:g} times; per packet sent, without what the machine took")
    rows = [{"users": n, "controller": name, **row} for (n, name), row in found.items()]
    write_rows(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
