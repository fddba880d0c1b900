# SPDX-License-Identifier: BSD-3-Clause
"""test_batch_law.py - times of batches by tables, as in src/base/batch_law_test.cc."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.costs.batch_law import BatchLaw, BatchTable
from batchplane.profile.device_fit import Point, fit_and_judge

TABLE = BatchTable((1, 16, 256), (64, 576), ((10, 20), (25, 80), (265, 1040)))
LAW = BatchLaw(batch_ns=100, table=TABLE)


@pytest.mark.parametrize(
    ("n_pkts", "pkt_bytes", "ns"),
    [(1, 64, 10), (256, 576, 1040), (4, 64, 13), (16, 320, 52.5), (496, 64, 505), (1, 1088, 30)],
)
def test_a_table_is_interpolated_and_goes_on(n_pkts: float, pkt_bytes: float, ns: float) -> None:
    assert LAW.at(n_pkts, pkt_bytes) == pytest.approx(ns)
    assert BatchLaw.given(LAW.as_json()) == LAW
    assert LAW.times(2).at(n_pkts, pkt_bytes) == pytest.approx(2 * ns)
    assert LAW.plus(600, 10).at(n_pkts, pkt_bytes) == pytest.approx(ns + 600 + 10 * n_pkts)


def points(change: float = 1.0) -> list[Point]:
    """A device that works on four at once; a batch of 64 takes `change` times as long."""
    times = {1: 9000.0, 4: 9100.0, 16: 10_000.0, 64: 14_000.0 * change, 256: 30_000.0}
    return [
        Point(n, b, ns + n * b / 9, (ns + n * b / 9) / 4)
        for n, ns in times.items()
        for b in (60, 572)
    ]


def test_a_measurement_becomes_a_table_of_all_its_points() -> None:
    fit = fit_and_judge(points())
    for point in points():
        assert fit.law.at(point.n_pkts, point.pkt_bytes) == pytest.approx(point.ns, abs=0.1)
    table = fit.law.table
    assert table is not None and table.busy_ns[0][0] == pytest.approx(table.ns[0][0] / 4, abs=0.1)
    assert fit.median_error is not None and fit.p95_error is not None
    # Judged by a table without 4 and 64: on the straight way from 16 to 256, 64 takes 14,000 ns.
    assert fit.p95_error < 0.02
    assert (fit_and_judge(points(1.5)).p95_error or 0) > 0.3


def test_more_packets_never_take_less_time() -> None:
    table = fit_and_judge(points(0.1)).law.table
    assert table is not None
    for column in zip(*table.ns, strict=True):
        assert list(column) == sorted(column)


def test_a_table_with_gaps_is_none() -> None:
    assert fit_and_judge(points()[1:]).law.table is None
    assert fit_and_judge(points()[1:]).law.pkt_ns > 0


@pytest.mark.parametrize(
    "change",
    [
        {"batch_pkts": [1, 1, 256]}, {"pkt_bytes": []}, {"ns": [[1, 2]]}, {"busy_ns": [[1], [2], [3]]},
        {"ns": [[1, 2], [3, 4], [5, -6]]},
    ],
)  # fmt: skip
def test_a_table_that_is_not_whole_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="table"):
        BatchTable.given({**TABLE.as_json(), **change})
