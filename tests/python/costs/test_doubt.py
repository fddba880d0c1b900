# SPDX-License-Identifier: BSD-3-Clause
"""test_doubt.py - how sure the costs of a profile are, and what is measured again."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.base.problems import RunFailed
from batchplane.costs.doubt import judge, left_out_errors
from batchplane.profile.surest import surest


def document(times: list[float], law_ns: float = 100.0, n_rejected: int = 0) -> dict[str, Any]:
    return {
        "modules": [{"kind": "ttl", "table_ns": times}],
        "check": {
            "n_rejected": n_rejected,
            "points": [{"measured_ns_per_pkt": 100.0, "law_ns_per_pkt": law_ns}],
        },
    }


STRAIGHT = [20.0 + 5.0 * n for n in range(1, 33)]
ROUGH = [ns * (1.08 if n % 2 else 1.0) for n, ns in enumerate(STRAIGHT)]


def test_each_size_is_predicted_by_its_neighbours() -> None:
    errors = left_out_errors({"table_ns": [10.0, 30.0, 40.0, 50.0, 70.0]})
    assert errors == pytest.approx({2: 5 / 30, 3: 0.0, 4: 5 / 50})
    sizes = {"table_ns": [10.0, 20.0, 40.0], "table_pkts": [1, 2, 4]}
    assert left_out_errors(sizes) == pytest.approx({2: 0.0})
    assert left_out_errors({"cost_per_pkt_ns": 3.0}) == {}


def test_what_only_continues_the_line_does_not_count() -> None:
    module = {"table_ns": [10.0, 30.0, 40.0, 50.0, 60.0], "measured_up_to_pkts": 3}
    assert list(left_out_errors(module)) == [2]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (document(STRAIGHT), "sure: within 0% of what the whole pipeline takes (limit 25%); sizes"),
        (document(STRAIGHT, 140.0), "NOT SURE: within 40% of"),
        (document(ROUGH), "NOT SURE: within 0% of"),
        (
            document(STRAIGHT, n_rejected=2),
            "impossible measurements of the whole pipeline left out: 2",
        ),
        ({"modules": []}, "sure: sizes left out"),
    ],
)
def test_one_line_says_how_sure_it_is(given: dict[str, Any], expected: str) -> None:
    line = judge(given).line()
    assert expected in line and "\n" not in line
    assert line.startswith("sure: ") == judge(given).is_sure


def measured_in_turn(*documents: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The one taken, and those that were told to be measured again."""
    coming, told = list(documents), []
    taken = surest(lambda: coming.pop(0), lambda given: judge(given).doubt, told.append)
    return taken, told


def test_what_is_in_doubt_is_measured_again() -> None:
    sure, busy, busier = document(STRAIGHT), document(STRAIGHT, 140.0), document(STRAIGHT, 160.0)
    assert measured_in_turn(sure) == (sure, [])
    for doubtful in (busy, document(ROUGH), document(STRAIGHT, n_rejected=1)):
        assert measured_in_turn(doubtful, sure) == (sure, [doubtful])
    assert measured_in_turn(busy, busier) == (busy, [busy])


def test_a_second_measurement_may_fail() -> None:
    coming = [document(STRAIGHT, 140.0)]

    def measure() -> dict[str, Any]:
        if not coming:
            raise RunFailed("the profiler ended with code 1")
        return coming.pop()

    assert judge(surest(measure, lambda given: judge(given).doubt)).whole_error == pytest.approx(
        0.4
    )
