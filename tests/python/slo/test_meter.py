# SPDX-License-Identifier: BSD-3-Clause
"""test_meter.py - the counters of a meter at the end of a period."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.base.problems import BadInput
from batchplane.slo.meter import Meter

MODEL = {
    "modules": [
        {"name": name, "cost_per_batch_ns": 40, "cost_per_pkt_ns": 3} for name in ("a", "b")
    ],
    "flows": [{"name": "f", "path": ["a", "b"], "slo_ns": 240}],
}
INPUT = 2  # its row among the modules


def column(period: dict[str, Any], name: str, section: str = "modules") -> list[int]:
    return period[section][name]  # type: ignore[no-any-return]


def test_batches_and_what_they_were_made_of() -> None:
    meter = Meter(MODEL)
    meter.entered("a")
    meter.entered("a", 2)
    meter.began("a", 2, 100, "age")
    meter.ended("a", 146)
    meter.arrived("b", 2)
    meter.lost("a", 4)
    period = meter.close(1000)
    assert (period["now_ns"], period["period_ns"]) == (1000, 1000)
    assert column(period, "arrived_batches") == [2, 1, 0]
    assert column(period, "arrived_pkts") == [3, 2, 0]
    assert column(period, "held_pkts") == [1, 2, 0]
    assert column(period, "batches") == [1, 0, 0]
    assert column(period, "pkts") == [2, 0, 3]
    assert column(period, "age_firings") == [1, 0, 0]
    assert column(period, "sampled_ns") == [46, 0, 0]
    assert column(period, "sampled_pkts_squared") == [4, 0, 0]
    assert column(period, "sampled_pkts_ns") == [92, 0, 0]
    assert period["inputs"] == {"offered_pkts": [7], "taken_pkts": [3], "lost_pkts": [4]}
    # The next period starts empty, except for held items.
    period = meter.close(1500)
    assert period["period_ns"] == 500 and column(period, "held_pkts") == [1, 2, 0]
    assert column(period, "pkts") == [0, 0, 0] and column(period, "offered_pkts", "inputs") == [0]


def test_a_run_takes_what_came_during_the_one_before() -> None:
    meter = Meter(MODEL)
    meter.entered("a", 8)
    meter.began("a", 4, 0)
    meter.entered("a")
    meter.entered("a")
    meter.ended("a", 50)  # both belong to one run
    meter.began("a", 4, 50)
    meter.ended("a", 110)  # nothing has come: the same run continues
    meter.arrived("b", 4)
    meter.began("b", 4, 110)
    meter.entered("a")
    meter.ended("b", 150)
    period = meter.close(300)
    assert column(period, "runs", "tasks") == [3]
    assert column(period, "in_pkts", "tasks") == [11]
    assert column(period, "run_max_ns", "tasks") == [100]
    assert column(period, "firings", "tasks") == [3]
    assert column(period, "busy_ns", "tasks") == [150]
    assert column(period, "idle_ns", "tasks") == [150]


def run_batches(meter: Meter, start_ns: int, *times_ns: int) -> dict[str, Any]:
    for i, ns in enumerate(times_ns):
        meter.entered("a", 2)
        meter.began("a", 2, start_ns + 1000 * i)
        meter.ended("a", start_ns + 1000 * i + ns)
    return meter.close(start_ns + 10_000)


def test_a_batch_that_takes_far_longer_than_others_was_interrupted() -> None:
    meter = Meter(MODEL)
    # The model says 46 ns and batches take twice that, which is not a gap.
    assert column(run_batches(meter, 0, 92, 90, 92), "gaps", "tasks") == [0]
    period = run_batches(meter, 10_000, 92, 900, 92)
    assert column(period, "gaps", "tasks") == [1] and column(period, "gap_ns", "tasks") == [808]
    assert column(period, "busy_ns", "tasks") == [1084]
    assert column(period, "batches")[0] == 3 and column(period, "sampled_ns")[0] == 184
    # A lasting slow-down becomes the normal time.
    assert column(run_batches(meter, 20_000, 900, 900, 900), "gaps", "tasks") == [3]
    assert column(run_batches(meter, 30_000, 900, 900, 900), "gaps", "tasks") == [0]


def test_a_batch_over_the_end_of_a_period_keeps_both_busy() -> None:
    meter = Meter(MODEL)
    meter.entered("a")
    meter.began("a", 1, 60)
    assert column(meter.close(100), "busy_ns", "tasks") == [40]
    meter.ended("a", 130)
    period = meter.close(200)
    assert column(period, "busy_ns", "tasks") == [30]
    assert column(period, "sampled_ns") == [70, 0, 0]


def test_delays_by_percentile_and_by_parts_of_the_slo() -> None:
    meter = Meter(MODEL, percentile=0.9)
    for delay_ns in (240, 10, 9, 241, 300, 5000, 100, 20, 30, 40):
        meter.left("f", delay_ns)
    flows = meter.close(1000)["flows"]
    assert flows["pkts"] == [10] and flows["late_pkts"] == [3] and flows["slo_ns"] == [240]
    assert (
        flows["delay_ns"] == [300] and flows["p50_ns"] == [40] and flows["delay_max_ns"] == [5000]
    )
    assert flows["delay_sum_ns"] == [5990]
    buckets = flows["slo_buckets"][0]
    assert (buckets[0], buckets[1], buckets[2], buckets[10]) == (1, 1, 1, 1)
    assert buckets[24:] == [2, 1, 0, 0, 0, 0, 0, 1] and sum(buckets) == 10
    meter.slo_ns["f"] = 20
    meter.left("f", 21)
    assert meter.close(2000)["flows"]["late_pkts"] == [1]


def test_impossible_events_are_refused() -> None:
    meter = Meter(MODEL)
    meter.entered("a", 2)
    with pytest.raises(BadInput, match=r"3 items of 'a' cannot run: it holds fewer"):
        meter.began("a", 3, 0)
    meter.began("a", 1, 0)
    with pytest.raises(BadInput, match=r"1 items of 'a' cannot run: its worker is busy"):
        meter.began("a", 1, 0)
    with pytest.raises(BadInput, match=r"no batch of 'b' is running"):
        meter.ended("b", 5)
    with pytest.raises(BadInput, match=r"there is no module 'c'"):
        meter.entered("c")
    with pytest.raises(BadInput, match=r"there is no flow 'g'"):
        meter.left("g", 5)
    with pytest.raises(BadInput, match=r"now_ns: a period takes some time"):
        meter.close(0)
