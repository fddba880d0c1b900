# SPDX-License-Identifier: BSD-3-Clause
"""Percentiles are values, by nearest rank."""

import pytest

from batchplane.base.percentile import percentile


@pytest.mark.parametrize(("p", "value"), [(0, 1), (0.2, 1), (0.21, 2), (0.5, 3), (0.99, 5), (1, 5)])
def test_a_percentile_is_a_value_by_nearest_rank(p: float, value: int) -> None:
    assert percentile([1, 2, 3, 4, 5], p) == value
    assert percentile([7], p) == 7
