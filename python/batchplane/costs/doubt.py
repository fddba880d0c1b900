# SPDX-License-Identifier: BSD-3-Clause
"""doubt.py - whether the costs of a profile add up to what the whole pipeline took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# On a quiet machine the costs are within 5 to 16 % of the whole. Beyond this, they were measured
# while other programs slowed some of the parts, or some of the whole.
SURE = 0.25


def error_of(document: Mapping[str, Any]) -> float:
    """The largest relative difference between the whole pipeline, however fed and buffered, and
    the sum of its costs; 0 for a document that does not tell."""
    points = document.get("check", {}).get("points", ())
    return max(
        (
            abs(point["law_ns_per_pkt"] / point["measured_ns_per_pkt"] - 1)
            for point in points
            if point["measured_ns_per_pkt"] > 0
        ),
        default=0.0,
    )
