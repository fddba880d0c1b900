# SPDX-License-Identifier: BSD-3-Clause
"""doubt.py - how sure the costs of a profile are: whether they add up to what the whole pipeline
took, and how well the tables predict sizes that are left out of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.percentile import percentile_or_0

# On a quiet machine the costs are within 5 to 16 % of the whole. Beyond this, they were measured
# while other programs slowed some of the parts, or some of the whole.
SURE = 0.25
# Of the relative errors at left-out sizes, over all tables of a profile.
MEDIAN_LIMIT = 0.03
P95_LIMIT = 0.10
SMALL_PKTS = 4  # sizes of batches that are not collected
_MIN_NS = 1.0  # shorter times are noise and count as this


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


def left_out_errors(module: Mapping[str, Any], up_to_pkts: int | None = None) -> dict[int, float]:
    """By inner size of a module's table: how far the time, interpolated between both neighbours in
    the table, is off what was measured; `up_to_pkts`: the largest size that counts."""
    times = module.get("table_ns") or ()
    sizes = module.get("table_pkts") or range(1, len(times) + 1)
    # Beyond the largest measured size the table only continues the line.
    most = up_to_pkts or module.get("measured_up_to_pkts") or max(sizes, default=0)
    n_used = sum(size <= most for size in sizes)
    errors = {}
    for i in range(1, n_used - 1):
        share = (sizes[i] - sizes[i - 1]) / (sizes[i + 1] - sizes[i - 1])
        between_ns = times[i - 1] + share * (times[i + 1] - times[i - 1])
        errors[sizes[i]] = abs(between_ns - times[i]) / max(times[i], _MIN_NS)
    return errors


@dataclass(frozen=True)
class Judgement:
    """How sure a profile is."""

    whole_error: float | None  # see error_of; None: the whole pipeline was not measured
    n_rejected: int  # measurements of the whole that cannot be
    median: float  # of the errors at left-out sizes
    p95: float
    # At sizes up to SMALL_PKTS. Told only: there, laws bend most, and the table has every size.
    small_p95: float

    @property
    def whole_doubt(self) -> float:
        """Up to 1 if the whole is as the costs say."""
        rejected = 1.0 + self.n_rejected if self.n_rejected else 0.0
        return max((self.whole_error or 0.0) / SURE, rejected)

    @property
    def doubt(self) -> float:
        """Up to 1 if all is within its limits."""
        return max(self.whole_doubt, self.median / MEDIAN_LIMIT, self.p95 / P95_LIMIT)

    @property
    def is_sure(self) -> bool:
        """Whether all is within its limits."""
        return self.doubt <= 1

    def line(self) -> str:
        """One line that says how sure the costs are, and why."""
        parts = []
        if self.whole_error is not None:
            parts.append(
                f"within {self.whole_error:.0%} of what the whole pipeline takes (limit {SURE:.0%})"
            )
        if self.n_rejected:
            parts.append(
                f"impossible measurements of the whole pipeline left out: {self.n_rejected}"
            )
        parts.append(
            f"sizes left out of the tables are off by {self.median:.1%} in the middle, "
            f"{self.p95:.1%} at the 95th percentile (limits {MEDIAN_LIMIT:.0%}, {P95_LIMIT:.0%}), "
            f"{self.small_p95:.1%} at 2 to {SMALL_PKTS} packets"
        )
        return ("sure: " if self.is_sure else "NOT SURE: ") + "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """For the costs file."""
        return {
            "is_sure": self.is_sure,
            "whole_error_ratio": self.whole_error,
            "left_out_median_ratio": self.median,
            "left_out_p95_ratio": self.p95,
            "left_out_small_p95_ratio": self.small_p95,
        }


def judge(document: Mapping[str, Any]) -> Judgement:
    """How sure the costs of a document are."""
    by_size = [
        error for module in document.get("modules", ()) for error in left_out_errors(module).items()
    ]
    check = document.get("check", {})
    every = sorted(error for _, error in by_size)
    small = sorted(error for size, error in by_size if size <= SMALL_PKTS)
    return Judgement(
        error_of(document) if check.get("points") else None,
        int(check.get("n_rejected", 0)),
        percentile_or_0(every, 0.5),
        percentile_or_0(every, 0.95),
        percentile_or_0(small, 0.95),
    )
