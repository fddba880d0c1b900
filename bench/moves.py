#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""moves.py - how long workers pause while parts of a pipeline at full load move between workers.

usage: .venv/bin/python bench/moves.py [--moves 1000] [--branches 64] [--spare 1]

`vrf` with packets generated in the worker; branches of random next hops move back and forth, some
twenty a second. Prints how long the workers that give or take a branch paused, and how long a
request took; most of a request is building the graph while traffic flows.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time

from case_daemon import loaded, on_daemon

PARTS = 8  # most branches away at a time, as each takes room in the pool
PAUSE_S = 0.02


def main() -> int:
    """Moves branches, and prints the durations."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--moves", type=int, default=1000)
    parser.add_argument("--branches", type=int, default=64)
    parser.add_argument("--spare", type=int, default=1)
    options = parser.parse_args()
    words = ["vrfs=1", f"nexthops={options.branches}", "inline=1", f"spare={options.spare}"]
    workers = ["main", *(f"spare_{w}" for w in range(options.spare))]
    rng = random.Random(1)
    stops_us, requests_ms = [], []
    with on_daemon(loaded("vrf", words), "bench_moves") as (_, client):
        while len(stops_us) < options.moves:
            begin = time.perf_counter()
            part, worker = f"first_0_{rng.randrange(PARTS)}", rng.choice(workers)
            answer = client.move({part: worker})
            took_s = time.perf_counter() - begin
            if answer["moved"]:
                stops_us.append(answer["stop_ns"] / 1e3)
                requests_ms.append(took_s * 1e3)
            time.sleep(PAUSE_S)
        balance = client.show("runtime")["balance"]
    cuts = statistics.quantiles(stops_us, n=100)
    print(f"{len(stops_us)} moves, vrf with {options.branches} branches, {len(workers)} workers")
    print(f"stood still [us]: p50 {cuts[49]:.0f}, p90 {cuts[89]:.0f}, p99 {cuts[98]:.0f}, "
          f"max {max(stops_us):.0f}")  # fmt: skip
    print(f"a request [ms]: p50 {statistics.median(requests_ms):.1f}")
    print(f"dropped: {balance['dropped_pkts']} of {balance['in_pkts']} packets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
