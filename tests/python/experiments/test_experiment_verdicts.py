# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment_verdicts.py - claims compared with numbers, and the page of verdicts."""

from __future__ import annotations

from typing import Any

from batchplane.experiments.batchy.fig8a import most_gain
from batchplane.experiments.batchy.fig9a import recovery_periods
from batchplane.experiments.batchy.table2_claims import claims
from batchplane.experiments.common.fidelity import with_block
from batchplane.experiments.common.verdict import (
    at_least,
    at_most,
    close_to,
    in_range,
    late_there,
    no_more_under,
    percent,
    times,
)


def test_a_range() -> None:
    inside = in_range("c", {"a": 1.6, "b": 2.4}, 1.5, 2.5, times)
    assert (inside.verdict, inside.paper, inside.ours) == (
        "same",
        "1.50x to 2.50x",
        "1.60x to 2.40x",
    )
    above = in_range("c", {"a": 1.6, "b": 3.0}, 1.5, 2.5, times)
    assert above.verdict == "better"
    assert "1 of 2 go past the range to the good side, b with 3.00x" in above.reason
    mixed = in_range("c", {"a": 1.0, "b": 3.0}, 1.5, 2.5, times)
    assert mixed.verdict == "different"
    assert mixed.reason == "1 of 2 lie below 1.50x: a; the farthest is a with 1.00x."
    low = in_range("c", {"a": 0.5}, 1.0, 2.0, times, is_more_better=False)
    assert low.verdict == "better"
    assert in_range("c", {}, 1.0, 2.0, times).verdict == "different"


def test_bounds() -> None:
    assert at_most("c", {"a": 0.09}, 0.09, percent).verdict == "same"
    assert at_most("c", {"a": 0.0}, 0.09, percent).verdict == "better"
    assert at_most("c", {"a": 0.0}, 0.0, percent).verdict == "same"
    over = at_most("c", {"a": 0.01, "b": 0.2}, 0.09, percent)
    assert over.verdict == "different"
    assert over.reason == "1 of 2 are above 9.0%: b; b has the most with 20%."
    assert at_least("c", {"a": 7.5}, 7.5, times).verdict == "same"
    under = at_least("c", {"a": 8.0, "b": 7.0}, 7.5, times)
    assert (under.verdict, under.ours) == ("different", "7.00x to 8.00x")
    assert at_most("c", {}, 1.0, times).verdict == "different"
    assert at_least("c", {}, 1.0, times).verdict == "different"


def test_causes_come_from_the_same_rows() -> None:
    full, most = {"a": 1.2, "b": 1.4, "c": 2.0}, {"a": 1.3, "b": 1.8, "c": 1.0}
    assert no_more_under("max", full, most, 1.5, times) == (
        "Under max, 1 of these is no higher (1.30x)."
    )
    assert no_more_under("max", full, {"a": 1.6, "b": 1.8}, 1.5, times) == ""
    late = {"a": 0.2, "b": 0.0, "c": 0.5}
    assert late_there("full", full, late, 1.5, 0.001) == (
        "In 1 of 2 full itself is late: a (20% of periods)."
    )
    assert late_there("full", full, dict.fromkeys(full, 0.0), 1.5, 0.001) == ""


def test_full_batches_gain_what_the_cost_law_says() -> None:
    assert most_gain(1, 0.3) == 1
    assert most_gain(1000, 0.0, 32) < 32  # some packets meet on a branch
    assert abs(most_gain(8, 0.45) - 1.24) < 0.02


def test_reasons_name_a_few_and_no_worst_of_equals() -> None:
    values = {f"p{i}": 0.0 for i in range(8)}
    assert at_least("c", values, 1.0, times).reason == (
        "8 of 8 are below 1.00x: p0, p1, p2, p3 and 4 more; p0 has the least with 0.00x."
    )
    assert at_most("c", dict.fromkeys(values, 2.0), 1.0, times).reason == (
        "8 of 8 are above 1.00x: p0, p1, p2, p3 and 4 more; p0 has the most with 2.00x."
    )
    assert at_least("c", values, 0.0, times).reason == "All 8 have 0.00x."
    assert at_least("c", {"a": 1.0, "b": 2.0}, 1.0, times).reason == "a has the least with 1.00x."


def test_closeness() -> None:
    assert close_to("c", 100.9, 100.0, 0.01, times).verdict == "same"
    assert close_to("c", 98.0, 100.0, 0.01, times).verdict == "different"


def row(pipeline: str, controller: str, **more: Any) -> dict[str, Any]:
    return {
        "pipeline": pipeline,
        "controller": controller,
        "batch_mean_pkts": 20.0,
        "rate_pps": 1e6,
        "violated_ratio": 0.0,
        "excess_mean_ratio": 0.0,
        **more,
    }


def test_claims_of_table2_change_with_the_numbers() -> None:
    names = ("null", "max", "onoff", "full", "optimal", "full, delta 0.2")
    rows = [row("GW(16)", name) for name in names] + [row("RC(16)", name) for name in names]
    # No buffer at all: nothing to judge a controller by.
    rows += [row("GW(1)", name, batch_mean_pkts=None, violated_ratio=1.0) for name in names]
    by = {(r["pipeline"], r["controller"]): r for r in rows}
    by["GW(16)", "null"].update(batch_mean_pkts=2.5, rate_pps=0.5e6)
    by["RC(16)", "null"].update(rate_pps=1e6 / 7.5)
    by["GW(16)", "full"].update(batch_mean_pkts=15.0)
    good = {v.claim: v.verdict for v in claims(rows)}
    assert "different" not in good.values()
    by["GW(16)", "full"].update(violated_ratio=0.1, excess_mean_ratio=0.03, rate_pps=0.6e6)
    by["GW(16)", "optimal"].update(rate_pps=0.5e6, violated_ratio=0.01)
    bad = [v.claim for v in claims(rows) if v.verdict == "different"]
    assert len(bad) == 7  # all except the null, batch, robot, delta and optimal-to-null claims


def test_recovery_counts_the_first_late_periods_only() -> None:
    series = {"time_ns": [10, 20, 30, 40, 50, 60, 70, 80]}
    late = [False, False, False, False, True, True, False, True]
    assert recovery_periods({**series, "is_violated": late}, 1, 40) == 2
    assert recovery_periods({**series, "is_violated": [False] * 8}, 1, 40) == 0
    assert recovery_periods({**series, "is_violated": [True] * 8}, 1, 40) == 4


def test_blocks_are_replaced_and_the_rest_stays() -> None:
    page = with_block("# Fidelity\n\nBy hand.\n", "costs prior", "first\n")
    page = with_block(page, "costs paper", "second\n")
    page = with_block(page + "\nMore by hand.\n", "costs prior", "third \\1\n")
    assert "first" not in page
    assert page.index("third \\1") < page.index("second") < page.index("More by hand.")
    assert page.count("<!-- begin costs prior -->") == 1
