# SPDX-License-Identifier: BSD-3-Clause
"""test_admission.py - what `check` says of promises over a packet scheduler, before anything runs."""

from __future__ import annotations

import re

import pytest

from batchplane.commands.admission import Admitted, admission, line
from batchplane.daemon.process import find_program
from batchplane.lang.load import load_pipeline


def _first(**params: str) -> Admitted:
    rows = admission(load_pipeline("shared_link", params), find_program())
    assert [row.flow for row in rows] == ["tenant_0"]
    return rows[0]


def test_what_is_left_for_the_graph_is_told() -> None:
    row = _first()
    assert row.is_kept
    assert row.share_bps == pytest.approx(1e9 * 8 / 33)
    # 3 sigma / phi and two longest packets of QFQ, and a packet of its own.
    assert row.bound_ns == pytest.approx(8 * (3 * 32 * 33 + 2 * 1500 + 200 * 33 / 8))
    assert re.search(r"tenant_0: SLO 200us = graph .* \+ link at most .*are left", line(row))


def test_a_flow_that_sends_more_than_its_share_is_told_the_weight_that_would_do() -> None:
    row = _first(weight="1")
    assert not row.is_kept
    assert "more than its share of the link" in line(row)
    found = re.search(r"flow 1: (\d+)", line(row))
    assert found is not None
    weight = int(found.group(1))
    assert _first(weight=str(weight)).is_kept
    less = _first(weight=str(weight - 1))
    assert not less.is_kept or less.bound_ns > 0.5 * (less.slo_ns - less.graph_ns)


def test_a_promise_that_no_weight_keeps_is_told() -> None:
    row = _first(slo="20us")
    assert not row.is_kept
    assert "no weights would do" in line(row)


def test_without_a_scheduler_nothing_is_said() -> None:
    assert admission(load_pipeline("gateway"), find_program()) == []
