# SPDX-License-Identifier: BSD-3-Clause
"""percentile.py - percentiles by nearest rank, by the rule of src/base/percentile.h."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

Number = TypeVar("Number", int, float)


def percentile(ascending: Sequence[Number], p: float) -> Number:
    """The value beyond which at most a share 1 - p lies; at least one value, in ascending order."""
    return ascending[max(1, math.ceil(p * len(ascending))) - 1]


def percentile_or_0(ascending: Sequence[Number], p: float) -> Number | int:
    """The same, and 0 without values."""
    return percentile(ascending, p) if ascending else 0
