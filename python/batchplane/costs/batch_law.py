# SPDX-License-Identifier: BSD-3-Clause
"""batch_law.py - the time a device takes for a batch: a line, or a table with a line that
summarises it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

LAW_KEYS = ("batch_ns", "pkt_ns", "byte_ns", "length_ns")
_MOST_NS = 1e9

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class BatchTable:
    """Measured times over batch sizes and packet lengths, both ascending: a row for each size."""

    batch_pkts: tuple[int, ...]
    pkt_bytes: tuple[int, ...]
    ns: Rows  # of a batch that is alone on the device
    busy_ns: Rows = ()  # by which it puts off all that come after it; empty: as long as it takes

    def at(self, n_pkts: float, pkt_bytes: float) -> float:
        """Interpolated between points; beyond them by the nearest slope, and never negative."""
        row, share = _step(self.batch_pkts, n_pkts)
        below = self._in_row(row, pkt_bytes)
        if share == 0:
            return max(0.0, below)
        return max(0.0, below + share * (self._in_row(row + 1, pkt_bytes) - below))

    def _in_row(self, row: int, pkt_bytes: float) -> float:
        i, share = _step(self.pkt_bytes, pkt_bytes)
        times = self.ns[row]
        return times[i] if share == 0 else times[i] + share * (times[i + 1] - times[i])

    def mapped(
        self, factor: float, more_batch_ns: float = 0.0, more_pkt_ns: float = 0.0
    ) -> BatchTable:
        """All times multiplied, then made longer."""

        def rows(of: Rows) -> Rows:
            return tuple(
                tuple(factor * ns + more_batch_ns + more_pkt_ns * n for ns in row)
                for n, row in zip(self.batch_pkts, of, strict=False)
            )

        return BatchTable(self.batch_pkts, self.pkt_bytes, rows(self.ns), rows(self.busy_ns))

    def as_json(self) -> dict[str, Any]:
        """Keys as in pipelines and files."""
        table: dict[str, Any] = {
            "batch_pkts": list(self.batch_pkts),
            "pkt_bytes": list(self.pkt_bytes),
            "ns": [list(row) for row in self.ns],
        }
        if self.busy_ns:
            table["busy_ns"] = [list(row) for row in self.busy_ns]
        return table

    @staticmethod
    def given(table: Mapping[str, Any]) -> BatchTable:
        """Raises ValueError if it is not whole."""
        sizes = tuple(int(n) for n in table["batch_pkts"])
        lengths = tuple(int(n) for n in table["pkt_bytes"])
        for points in (sizes, lengths):
            if not points or points[0] < 1 or any(a >= b for a, b in pairwise(points)):
                raise ValueError("the sizes and lengths of a table ascend from 1")
        times = [_rows(table[key]) if table.get(key) else () for key in ("ns", "busy_ns")]
        for rows in times[: 1 if not times[1] else 2]:
            if len(rows) != len(sizes) or any(len(row) != len(lengths) for row in rows):
                raise ValueError("a table has a row for each size, with a time for each length")
            if not all(0 <= ns <= _MOST_NS for row in rows for ns in row):
                raise ValueError("the times of a table are 0 to 1e9 ns")
        return BatchTable(sizes, lengths, *times)


def _rows(given: Sequence[Sequence[float]]) -> Rows:
    return tuple(tuple(float(ns) for ns in row) for row in given)


def _step(points: Sequence[int], at: float) -> tuple[int, float]:
    """The point below, so that there is one above it, and the way to that one."""
    if len(points) < 2:
        return 0, 0.0
    above = min(max(1, bisect_left(points, at)), len(points) - 1)
    return above - 1, (at - points[above - 1]) / (points[above] - points[above - 1])


@dataclass(frozen=True)
class BatchLaw:
    """The same law as in src/base/batch_law.h."""

    batch_ns: float = 0.0
    pkt_ns: float = 0.0
    byte_ns: float = 0.0
    length_ns: float = 0.0
    table: BatchTable | None = None

    def at(self, n_pkts: float, pkt_bytes: float) -> float:
        """The time in ns for a batch of n packets of this length."""
        if self.table is not None:
            return self.table.at(n_pkts, pkt_bytes)
        per_pkt_ns = self.pkt_ns + self.byte_ns * pkt_bytes
        return self.batch_ns + self.length_ns * pkt_bytes + per_pkt_ns * n_pkts

    def times(self, factor: float) -> BatchLaw:
        """The law of a device that is slower by this factor."""
        law = BatchLaw.of_line(factor * getattr(self, key) for key in LAW_KEYS)
        return law if self.table is None else replace(law, table=self.table.mapped(factor))

    def plus(self, batch_ns: float, pkt_ns: float) -> BatchLaw:
        """With this much more for each batch and each packet."""
        law = replace(self, batch_ns=self.batch_ns + batch_ns, pkt_ns=self.pkt_ns + pkt_ns)
        if self.table is None:
            return law
        return replace(law, table=self.table.mapped(1.0, batch_ns, pkt_ns))

    @staticmethod
    def of_line(parts: Iterable[float]) -> BatchLaw:
        """Parts in the order of LAW_KEYS; fewer will do."""
        batch_ns, pkt_ns, byte_ns, length_ns = (*parts, 0.0, 0.0, 0.0, 0.0)[: len(LAW_KEYS)]
        return BatchLaw(batch_ns, pkt_ns, byte_ns, length_ns)

    @staticmethod
    def given(law: Mapping[str, Any]) -> BatchLaw:
        """Reads a pipeline's law, which omits zeros. Raises ValueError for a table that is not
        whole."""
        table = BatchTable.given(law["table"]) if law.get("table") is not None else None
        line = BatchLaw.of_line(float(law.get(key, 0)) for key in LAW_KEYS)
        return replace(line, table=table)

    def as_json(self) -> dict[str, Any]:
        """Keys as in pipelines and files; length_ns and table only if there is one."""
        law: dict[str, Any] = {key: getattr(self, key) for key in LAW_KEYS[:3]}
        if self.length_ns:
            law["length_ns"] = self.length_ns
        return law if self.table is None else {**law, "table": self.table.as_json()}
