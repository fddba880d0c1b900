# SPDX-License-Identifier: BSD-3-Clause
"""test_promise.py - what breaks an SLO: late packets, or the mean."""

import pandas as pd
import pytest

from batchplane.base.promise import is_slo_broken

FLOW = {"slo_ns": 1000, "pkts": 100, "late_pkts": 5, "delay_sum_ns": 100_000}


def test_late_packets_decide() -> None:
    assert not is_slo_broken(FLOW, 0.95)
    assert is_slo_broken({**FLOW, "late_pkts": 6}, 0.95)
    assert is_slo_broken(FLOW, 1)
    assert not is_slo_broken({**FLOW, "slo_ns": 0}, 1)


def test_zero_is_the_mean() -> None:
    assert not is_slo_broken(FLOW, 0)
    assert is_slo_broken({**FLOW, "delay_sum_ns": 100_001}, 0)


@pytest.mark.parametrize("pkts", [1000, 1_000_000, 1_000_000_000])
def test_rounding_breaks_none(pkts: int) -> None:
    for share in (0.001, 0.01, 0.05, 0.1):
        late = round(share * pkts)
        assert not is_slo_broken({**FLOW, "pkts": pkts, "late_pkts": late}, 1 - share)
        assert is_slo_broken({**FLOW, "pkts": pkts, "late_pkts": late + 1}, 1 - share)


def test_of_a_frame_row_by_row() -> None:
    rows = [FLOW, {**FLOW, "late_pkts": 6}, {**FLOW, "pkts": 0, "slo_ns": 0}]
    assert list(is_slo_broken(pd.DataFrame(rows), 0.95)) == [False, True, False]
