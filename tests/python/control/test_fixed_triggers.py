# SPDX-License-Identifier: BSD-3-Clause
"""The search for the best fixed triggers, compared with exhaustive search where that is
possible."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from built import needs_extension
from fixed_triggers import FixedTriggers, Point
from random_pipelines import random_pipeline

pytestmark = needs_extension


def small(seed: int, batch_pkts: int) -> dict[str, Any]:
    spec = random_pipeline(seed)
    spec["engine"]["batch_pkts"] = batch_pkts
    return spec


def every(fixed: FixedTriggers) -> list[Point]:
    sizes = [pkts for pkts in range(fixed.batch_pkts + 1) if pkts != 1]
    return [
        fixed.measure((*triggers, 0))
        for triggers in itertools.product(sizes, repeat=len(fixed.classes))
    ]


def best_of_all(spec: dict[str, Any], shares: Sequence[float]) -> Iterator[tuple[float, float]]:
    """SLOs, and the highest rate within each."""
    points = every(FixedTriggers(spec))
    low, high = min(p.p95_ns for p in points), max(p.p95_ns for p in points)
    for share in shares:
        slo_ns = low + share * (high - low)
        yield slo_ns, max(p.rate_pps for p in points if p.p95_ns <= slo_ns)


@pytest.mark.parametrize(("seed", "batch_pkts"), [(7, 12), (5, 4)])  # of 2 and of 4 classes
def test_the_search_finds_the_best_of_all(seed: int, batch_pkts: int) -> None:
    spec = small(seed, batch_pkts)
    for slo_ns, best_pps in best_of_all(spec, (0.1, 0.25, 0.4, 0.55)):
        fixed = FixedTriggers(spec)
        fixed.explore()
        found = fixed.best(slo_ns)
        assert found is not None
        assert found.p95_ns <= slo_ns
        assert found.rate_pps >= 0.999 * best_pps


def test_random_search_with_few_tries_finds_it_too() -> None:
    spec = small(7, 12)
    for slo_ns, best_pps in best_of_all(spec, (0.25, 0.4, 0.55)):
        fixed = FixedTriggers(spec)
        found = fixed.best_of_many(slo_ns, [(pkts, pkts, 0) for pkts in range(13)], 200, seed=1)
        assert found is not None
        assert found.p95_ns <= slo_ns
        assert found.rate_pps >= 0.999 * best_pps


def test_nothing_is_found_if_no_triggers_meet_the_slo() -> None:
    fixed = FixedTriggers(small(7, 8))
    fixed.explore()
    assert fixed.best(1) is None


def test_triggers_of_a_class_decrease_evenly_and_none_is_one() -> None:
    spec = random_pipeline(3)
    for cost in spec["simulation"]["costs"].values():
        cost.update(cost_per_batch_ns=300.0, cost_per_pkt_ns=20.0)
    fixed = FixedTriggers(spec)
    (modules,) = [c for c in fixed.classes if len(c) == max(map(len, fixed.classes))]
    first = fixed.classes.index(modules)

    def of_class(trigger: int, spread: int) -> list[int]:
        triggers = [0] * len(fixed.classes)
        triggers[first] = trigger
        changes = fixed.decision((*triggers, spread))["changes"]
        return [c["trigger_pkts"] for m in modules for c in changes if c["module"] == m]

    n = len(modules)
    assert n > 2
    assert of_class(16, 0) == [16] * n
    falling = of_class(16, 8)
    assert (falling[0], falling[-1]) == (20, 12)
    assert falling == sorted(falling, reverse=True)
    assert min(of_class(2, 8)) == 2
    assert max(of_class(32, 8)) == 32
    assert of_class(0, 8) == [0] * n
