# SPDX-License-Identifier: BSD-3-Clause
"""device_fit.py - fits a law to batch times, and judges it by points that were not fitted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..costs.devices import BatchLaw

_PARTS = 4
_CHOICES = [s for n in range(1, _PARTS + 1) for s in itertools.combinations(range(_PARTS), n)]


@dataclass(frozen=True)
class Point:
    """One measurement."""

    n_pkts: int
    pkt_bytes: float
    ns: float


@dataclass(frozen=True)
class Fit:
    """A law, and its relative errors on points not used for the fit; None if there were none."""

    law: BatchLaw
    median_error: float | None = None
    p95_error: float | None = None
    n_left_out: int = 0


def fitted_values(values: Collection[float]) -> set[float]:
    """The extremes and every other value; the values between are left to judge the law by."""
    ordered = sorted(set(values))
    return {*ordered[::2], *ordered[-1:]}


def fit_law(points: Sequence[Point]) -> BatchLaw:
    """Least squares of relative errors; no coefficient is negative."""
    parts_of = ((1, p.n_pkts, p.n_pkts * p.pkt_bytes, p.pkt_bytes) for p in points if p.ns > 0)
    times = (p.ns for p in points if p.ns > 0)
    rows = [[part / ns for part in parts] for parts, ns in zip(parts_of, times, strict=True)]
    if not rows:
        return BatchLaw()
    matrix = np.array(rows)
    scale = matrix.max(axis=0)  # a byte costs a thousandth of a batch
    best, least = np.zeros(_PARTS), float(len(rows))
    # If the unconstrained fit has negative coefficients, some of them are 0 in the best law.
    for parts in _CHOICES:
        columns = matrix[:, parts] / scale[list(parts)]
        found, *_ = np.linalg.lstsq(columns, np.ones(len(rows)), rcond=None)
        error = float(((columns @ found - 1) ** 2).sum())
        if found.min() >= 0 and error < least:
            best, least = np.zeros(_PARTS), error
            best[list(parts)] = found / scale[list(parts)]
    return BatchLaw(*(float(part) for part in best))


def fit_and_judge(points: Sequence[Point]) -> Fit:
    """Fits the batch sizes and lengths of fitted_values(), and judges the law by all others."""
    sizes = fitted_values([p.n_pkts for p in points])
    lengths = fitted_values([p.pkt_bytes for p in points])

    def is_fitted(point: Point) -> bool:
        return point.n_pkts in sizes and point.pkt_bytes in lengths

    law = fit_law([p for p in points if is_fitted(p)])
    errors = sorted(
        abs(law.at(p.n_pkts, p.pkt_bytes) - p.ns) / p.ns
        for p in points
        if not is_fitted(p) and p.ns > 0
    )
    if not errors:
        return Fit(law)
    return Fit(law, rank(errors, 0.5), rank(errors, 0.95), len(errors))


def rank(ordered: Sequence[float], share: float) -> float:
    """A percentile by nearest rank."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
