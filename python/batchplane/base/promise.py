# SPDX-License-Identifier: BSD-3-Clause
"""promise.py - whether a flow breaks its SLO in a period, by the rule of src/exec/promise.h."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# That SLOs bound unless the settings say otherwise (src/slo/model/controller.h).
DEFAULT_PERCENTILE = 0.95
# 1 - 0.9 is a little less than 0.1; without this, 10 late packets of 100 would be too many.
_LATE_ROUNDING_PKTS = 1e-6


def is_slo_broken(flow: Mapping[str, Any] | Any, percentile: float) -> Any:
    """Whether too many packets were late or, for percentile 0, the mean delay exceeds the SLO.

    `flow` is one flow's period, or a data frame of many.
    """
    if percentile <= 0:
        is_beyond = flow["delay_sum_ns"] > flow["slo_ns"] * flow["pkts"]
    else:
        allowed_pkts = (1.0 - min(percentile, 1.0)) * flow["pkts"]
        is_beyond = flow["late_pkts"] > allowed_pkts + _LATE_ROUNDING_PKTS
    return is_beyond & (flow["slo_ns"] > 0) & (flow["pkts"] > 0)
