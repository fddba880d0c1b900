# SPDX-License-Identifier: BSD-3-Clause
"""device_fit.py - fits a law to batch times, and judges it by points that were not fitted."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..base.percentile import percentile
from ..costs.batch_law import BatchLaw, BatchTable

_PARTS = 4
_CHOICES = [s for n in range(1, _PARTS + 1) for s in itertools.combinations(range(_PARTS), n)]


@dataclass(frozen=True)
class Point:
    """One measurement."""

    n_pkts: int
    pkt_bytes: float
    ns: float
    busy_ns: float = 0.0  # of the device, with several under way; 0: as long as it takes


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
    return BatchLaw.of_line(float(part) for part in best)


def with_table(law: BatchLaw, points: Sequence[Point]) -> BatchLaw:
    """The line, with a table of these points; without one if points are missing in it. More packets
    never take less time: a reading that says so is replaced by the one before."""
    sizes = tuple(sorted({p.n_pkts for p in points}))
    lengths = tuple(sorted({round(p.pkt_bytes) for p in points}))
    alone = {(p.n_pkts, round(p.pkt_bytes)): p.ns for p in points}
    busy = {(p.n_pkts, round(p.pkt_bytes)): min(p.ns, p.busy_ns or p.ns) for p in points}
    if len(points) < 2 or len(alone) != len(sizes) * len(lengths):
        return law

    def rows(times: dict[tuple[int, int], float]) -> tuple[tuple[float, ...], ...]:
        columns = [itertools.accumulate([times[n, b] for n in sizes], max) for b in lengths]
        return tuple(tuple(round(ns, 1) for ns in row) for row in zip(*columns, strict=True))

    table = BatchTable(sizes, lengths, rows(alone), rows(busy) if busy != alone else ())
    return replace(law, table=table)


def fit_and_judge(points: Sequence[Point]) -> Fit:
    """A table of all points, and a line. Both are judged by those that are not of fitted_values():
    by a table without them."""
    sizes = fitted_values([p.n_pkts for p in points])
    lengths = fitted_values([p.pkt_bytes for p in points])

    def is_fitted(point: Point) -> bool:
        return point.n_pkts in sizes and point.pkt_bytes in lengths

    fitted = [p for p in points if is_fitted(p)]
    judged = with_table(fit_law(fitted), fitted)
    errors = sorted(
        abs(judged.at(p.n_pkts, p.pkt_bytes) - p.ns) / p.ns
        for p in points
        if not is_fitted(p) and p.ns > 0
    )
    law = with_table(replace(judged, table=None), points)
    if not errors:
        return Fit(law)
    return Fit(law, percentile(errors, 0.5), percentile(errors, 0.95), len(errors))
