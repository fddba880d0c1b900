# SPDX-License-Identifier: BSD-3-Clause
"""promise.py - whether a flow's SLO is broken in a period, as src/exec/promise.h says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# 1 - 0.9 is a little less than 0.1: it must not make 10 late packets of 100 too many.
_LATE_ROUNDING_PKTS = 1e-6


def is_slo_broken(flow: Mapping[str, Any] | Any, percentile: float) -> Any:
    """Whether more packets were late than may be, or for the mean (0) it is above the SLO.

    `flow` has the fields of one flow's period, or as a frame those of many.
    """
    if percentile <= 0:
        is_beyond = flow["delay_sum_ns"] > flow["slo_ns"] * flow["pkts"]
    else:
        allowed_pkts = (1.0 - min(percentile, 1.0)) * flow["pkts"]
        is_beyond = flow["late_pkts"] > allowed_pkts + _LATE_ROUNDING_PKTS
    return is_beyond & (flow["slo_ns"] > 0) & (flow["pkts"] > 0)
