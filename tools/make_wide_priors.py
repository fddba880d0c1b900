#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_wide_priors.py - built-in costs for batches of up to 256: the priors with cache effects
added.

usage: make_wide_priors.py PROFILE.json... > python/batchplane/costs/wide.json
The profiles need batches of 256 (`batchplane profile --pipeline gateway --param batch=256`). Only
their shape is used: time per packet at n over that at 32, smoothed, from 32 on.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PRIORS = ROOT / "python" / "batchplane" / "costs" / "priors.json"
FROM_PKTS, MAX_PKTS = 32, 256
WINDOW = 24  # sizes on each side that are smoothed over


def per_pkt_ns(table_ns: list[float], n: int) -> float:
    """The time per packet in batches of about n."""
    near = range(max(FROM_PKTS, n - WINDOW), min(MAX_PKTS, n + WINDOW) + 1)
    return statistics.median(table_ns[k - 1] / k for k in near)


def shapes(profiles: list[Path]) -> dict[str, list[float]]:
    """By kind: factors on the time per packet for batches of 1 to 256."""
    found: dict[str, list[list[float]]] = {}
    for path in profiles:
        for entry in json.loads(path.read_text())["modules"]:
            table = entry["table_ns"]
            if len(table) < MAX_PKTS or entry["cost_per_pkt_ns"] < 1:
                continue
            # The cost per batch is spread over n packets; only the cost per packet matters here.
            own = [t - entry["cost_per_batch_ns"] for t in table]
            base = per_pkt_ns(own, FROM_PKTS)
            factors = [per_pkt_ns(own, n) / base for n in range(FROM_PKTS, MAX_PKTS + 1)]
            found.setdefault(entry["kind"], []).append([1.0] * (FROM_PKTS - 1) + factors)
    return {
        kind: [statistics.fmean(at) for at in zip(*many, strict=True)]
        for kind, many in found.items()
    }


def widened(entry: dict[str, Any], factors: list[float]) -> dict[str, Any]:
    """Extends the entry's table, or keeps only its line if packets cost next to nothing."""
    per_batch, per_pkt = entry["cost_per_batch_ns"], entry["cost_per_pkt_ns"]
    known = entry["table_ns"][:FROM_PKTS]
    if per_pkt < 1:
        return {key: value for key, value in entry.items() if key != "table_ns"}
    # The line continues where the table ends.
    off = known[-1] - per_batch - per_pkt * len(known)
    more = range(len(known) + 1, MAX_PKTS + 1)
    rest = [round(per_batch + off + per_pkt * n * factors[n - 1], 1) for n in more]
    return {**entry, "table_ns": known + rest}


def main() -> None:
    """Prints the file."""
    document = json.loads(PRIORS.read_text())
    known = shapes([Path(name) for name in sys.argv[1:]])
    other = [statistics.median(at) for at in zip(*known.values(), strict=True)]
    entries = [widened(entry, known.get(entry["kind"], other)) for entry in document["modules"]]
    document |= {"batch_pkts": MAX_PKTS, "modules": entries}
    print(json.dumps(document, separators=(",", ":")))


if __name__ == "__main__":
    main()
