# SPDX-License-Identifier: BSD-3-Clause
"""test_cost_tables.py - the tables of the built-in costs are smooth: what interpolating over a size
would miss, and where a batch of one packet more is cheaper."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import batchplane.costs
from batchplane.base.percentile import percentile
from batchplane.costs.doubt import MEDIAN_LIMIT, P95_LIMIT, left_out_errors

FILES = ("priors", "epyc", "wide")
MEASURED_PKTS = 32  # larger sizes of the wide file continue these
MUCH, MUCH_NS = 0.1, 3.0

# Kind, the size, and the cheaper one of a packet more: in how many entries.
Drops = Counter[tuple[str, int, int]]
_INTEL = Drops(
    {
        ("checksum", 21, 22): 1,
        # Multiples of four packets.
        ("exact_match", 7, 8): 1,
        ("exact_match", 11, 12): 1,
        ("exact_match", 15, 16): 1,
        # Full batches.
        ("ipv4_lookup", 31, 32): 1,
        ("ipv6_lookup", 31, 32): 1,
        ("load_balancer", 31, 32): 1,
    }
)
# Not at a change of how many batches are timed at once: why is not known.
KNOWN = {
    "priors": _INTEL + Drops({("merge", 21, 22): 1}),
    "wide": _INTEL,
    "epyc": Drops(
        {
            ("checksum", 21, 22): 1,
            ("counter", 30, 31): 1,
            ("ether_type", 16, 17): 1,
            ("ether_type", 21, 22): 2,
            ("hop_limit", 21, 22): 1,
            ("ipv6_check", 21, 22): 1,
            ("l2_table", 21, 22): 1,
            ("load_balancer", 21, 22): 1,
            ("reassembly", 21, 22): 1,
            ("vlan_push", 16, 17): 2,
            ("vlan_push", 21, 22): 4,
            ("vlan_split", 10, 11): 2,
            ("vlan_split", 12, 13): 3,
            ("vlan_split", 16, 17): 3,
            ("vlan_split", 21, 22): 3,
        }
    ),
}


def modules_of(name: str) -> list[dict[str, Any]]:
    path = Path(batchplane.costs.__file__).parent / f"{name}.json"
    modules: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["modules"]
    return modules


@pytest.mark.parametrize("name", FILES)
def test_sizes_left_out_are_predicted(name: str) -> None:
    errors = sorted(
        error
        for module in modules_of(name)
        for error in left_out_errors(module, MEASURED_PKTS).values()
    )
    assert len(errors) > 70 * (MEASURED_PKTS - 2)
    assert percentile(errors, 0.5) <= MEDIAN_LIMIT
    assert percentile(errors, 0.95) <= P95_LIMIT


@pytest.mark.parametrize("name", FILES)
def test_one_packet_more_is_not_much_cheaper(name: str) -> None:
    found = Drops()
    for module in modules_of(name):
        times = module.get("table_ns", ())
        for size, (ns, next_ns) in enumerate(pairwise(times), start=1):
            if ns - next_ns > max(MUCH * ns, MUCH_NS):
                found[module["kind"], size, size + 1] += 1
    assert found == KNOWN[name]
