# SPDX-License-Identifier: BSD-3-Clause
"""law.py - how long a batch of n packets takes: a line, or a table with a line fitted to it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CostLaw:
    """The same law as base/cost_law.h. A table, if there is one, is more precise than the line."""

    cost_per_batch_ns: float
    cost_per_pkt_ns: float
    table_ns: tuple[float, ...] | None = None
    table_pkts: tuple[int, ...] | None = None  # batch sizes of the table; None: 1, 2, ...

    def at(self, n_pkts: float) -> float:
        """Time of a batch of n packets in ns: interpolated between two sizes; beyond the table's
        ends it follows the line's slope."""
        if not self.table_ns:
            return self.cost_per_batch_ns + self.cost_per_pkt_ns * n_pkts
        times, sizes = self.table_ns, self._sizes()
        i = bisect_left(sizes, n_pkts)
        if i < len(sizes) and sizes[i] == n_pkts:
            return times[i]
        if i in (0, len(sizes)):
            end = min(i, len(sizes) - 1)
            return max(0.0, times[end] + self.cost_per_pkt_ns * (n_pkts - sizes[end]))
        share = (n_pkts - sizes[i - 1]) / (sizes[i] - sizes[i - 1])
        return times[i - 1] + share * (times[i] - times[i - 1])

    def scaled(self, times: float) -> CostLaw:
        """The law of a module that is `times` times as slow."""
        return CostLaw(
            self.cost_per_batch_ns * times,
            self.cost_per_pkt_ns * times,
            self.table_ns and tuple(ns * times for ns in self.table_ns),
            self.table_pkts,
        )

    def plus(self, more: CostLaw) -> CostLaw:
        """This law and a line, such as the hop into the module, one after the other."""
        times = self.table_ns and tuple(
            ns + more.at(n) for n, ns in zip(self._sizes(), self.table_ns, strict=True)
        )
        return CostLaw(
            self.cost_per_batch_ns + more.cost_per_batch_ns,
            self.cost_per_pkt_ns + more.cost_per_pkt_ns,
            times,
            self.table_pkts,
        )

    def up_to(self, batch_pkts: int) -> CostLaw:
        """Drops table sizes beyond the first that reaches `batch_pkts`: no batch is larger."""
        if not self.table_ns:
            return self
        end = bisect_left(self._sizes(), batch_pkts) + 1
        return CostLaw(
            self.cost_per_batch_ns,
            self.cost_per_pkt_ns,
            self.table_ns[:end],
            self.table_pkts and self.table_pkts[:end],
        )

    def reaching(self, batch_pkts: int) -> CostLaw:
        """Extends the table to `batch_pkts` with the line's slope."""
        if not self.table_ns or self._sizes()[-1] >= batch_pkts:
            return self
        sizes = tuple(self._sizes())
        more = (batch_pkts,) if self.table_pkts else tuple(range(sizes[-1] + 1, batch_pkts + 1))
        return CostLaw(
            self.cost_per_batch_ns,
            self.cost_per_pkt_ns,
            (*self.table_ns, *(self.at(n) for n in more)),
            self.table_pkts and (*sizes, *more),
        )

    def as_json(self) -> dict[str, Any]:
        """Keys as in costs files and requests."""
        law: dict[str, Any] = {
            "cost_per_batch_ns": self.cost_per_batch_ns,
            "cost_per_pkt_ns": self.cost_per_pkt_ns,
        }
        if self.table_ns is not None:
            law["table_ns"] = list(self.table_ns)
        if self.table_pkts is not None:
            law["table_pkts"] = list(self.table_pkts)
        return law

    def _sizes(self) -> tuple[int, ...] | range:
        return self.table_pkts or range(1, len(self.table_ns or ()) + 1)


def law_from(given: Mapping[str, Any]) -> CostLaw:
    """From the checked keys of a costs file. A table without a line gets one fitted."""
    if "cost_per_batch_ns" not in given:
        # Loaded here: costs given as lines do not need the extension.
        from ..native.loader import load_native

        given = load_native().whole_cost(dict(given))
    table, sizes = given.get("table_ns"), given.get("table_pkts")
    return CostLaw(
        float(given["cost_per_batch_ns"]),
        float(given["cost_per_pkt_ns"]),
        None if table is None else tuple(float(ns) for ns in table),
        None if sizes is None else tuple(sizes),
    )
