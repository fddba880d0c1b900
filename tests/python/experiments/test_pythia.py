# SPDX-License-Identifier: BSD-3-Clause
"""test_pythia.py - Pythia's experiments: their claims, and the plant that they run in."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.base.problems import BadInput
from batchplane.experiments.catalogue import EXPERIMENTS
from batchplane.experiments.common.experiment import Outcome, Setup
from batchplane.experiments.common.verdict import DIFFERENT
from batchplane.placement.plant import (
    LONG_EFFORT,
    App,
    Load,
    capacity_pps,
    problem_of,
    run,
    solve,
    standins,
)

NAMES = [name for name in EXPERIMENTS if name.startswith("pythia_")]
# Claims that do not hold, as docs/measurements.md says.
FALSE = {
    "pythia_devices": {"devices that need the least energy a bit for some application"},
}


def outcome_of(name: str) -> Outcome:
    stages = EXPERIMENTS[name].plan(Setup(is_quick=True))
    assert next(stages) == []
    try:
        stages.send({})
    except StopIteration as stop:
        found: Outcome = stop.value
        return found
    raise AssertionError("more than one stage")


@pytest.mark.parametrize("name", NAMES)
def test_claims(name: str) -> None:
    """Everything is in virtual time: the same on every machine."""
    outcome = outcome_of(name)
    assert outcome.rows
    different = {v.claim for v in outcome.verdicts if v.verdict == DIFFERENT}
    assert different == FALSE.get(name, set())
    assert outcome.draw() is not None


def two(rate_pps: float, **more: Any) -> Load:
    return Load([App("aes", rate_pps), App("dpi", rate_pps)], 2, **more)


def test_the_same_seed_gives_the_same_course() -> None:
    assert run(two(500_000), "placer").rows == run(two(500_000), "placer").rows
    assert run(two(500_000), "placer").rows != run(two(500_000, seed=2), "placer").rows


def test_what_is_offered_is_served_refused_or_lost() -> None:
    course = run(two(40_000_000), "placer")
    for row in course.rows[2:]:
        for app in row["apps"].values():
            known = app["served_pkts"] + app["refused_pkts"] + app["lost_pkts"]
            # Some packets are in flight from one period to the next.
            assert known == pytest.approx(app["offered_pkts"], rel=0.05)
    assert course.sum("refused_pkts", first=2) > 0


def test_more_than_the_capacity_is_not_served() -> None:
    load = two(1.0)
    most_pps = capacity_pps(load)
    assert solve(two(0.45 * most_pps), LONG_EFFORT)["outcome"]["served"] > 0.999
    assert solve(two(0.6 * most_pps), LONG_EFFORT)["outcome"]["served"] < 0.999


def test_unknown_names_are_refused() -> None:
    with pytest.raises(BadInput, match="nobody is called"):
        run(two(1.0), "wizard")
    with pytest.raises(KeyError):
        problem_of(Load([App("chess", 1.0)], 1))
    assert "not measured" in standins()["origin"]
