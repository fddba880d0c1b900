# SPDX-License-Identifier: BSD-3-Clause
"""test_scheduling_advice.py - advice for controllers whose queues drop packets, and only for
them."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.control.advice import advice


def pipeline(execution: Any = None, *workers: dict[str, Any]) -> dict[str, Any]:
    engine = {} if execution is None else {"execution": execution}
    return {"engine": engine, "workers": list(workers)}


OFF = {"mode": "wfq", "backpressure": "off"}
ON = {"mode": "wfq", "backpressure": "on"}


@pytest.mark.parametrize("execution", ["wfq", {"mode": "wfq"}, OFF, {**OFF, "queue_pkts": 128}])
def test_queues_that_drop_get_advice(execution: Any) -> None:
    line = advice("wfq", pipeline(execution))
    assert line.startswith("controller 'wfq' takes the polled rate")
    assert "(engine: backpressure is off)" in line
    assert line.endswith("'execution: {mode: wfq, backpressure: on}'")


@pytest.mark.parametrize(
    "execution", [None, "run_to_completion", ON, {**ON, "backpressure": "early_drop"}]
)
def test_queues_that_do_not_drop_get_none(execution: Any) -> None:
    assert advice("wfq", pipeline(execution)) == ""


@pytest.mark.parametrize("controller", [None, "null", "optimal", "nfvnice"])
def test_other_controllers_need_none(controller: str | None) -> None:
    assert advice(controller, pipeline(OFF)) == ""


def test_workers_have_their_own() -> None:
    own = {"name": "w0", "execution": {"backpressure": "on"}}
    assert advice("wfq", pipeline(OFF, own)) == ""
    other = {"name": "w1"}
    assert "(engine: backpressure" in advice("wfq", pipeline(OFF, own, other))
    worse = {"name": "w1", "execution": {"mode": "wfq"}}
    assert "(worker w1: backpressure" in advice(
        "wfq", pipeline(ON, own, {**worse, "execution": OFF})
    )
