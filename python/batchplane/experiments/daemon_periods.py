# SPDX-License-Identifier: BSD-3-Clause
"""daemon_periods.py - a daemon's promises, period by period, from what it counts itself.

Its counts begin anew when a promise changes; a period that the machine disturbed is counted apart.
"""

from __future__ import annotations

import statistics
from typing import Any, Protocol

from .case import Case

Json = dict[str, Any]
# Delays of disturbed periods are orders of magnitude longer; they say nothing of a controller.
_MOST_OF_MEDIAN = 3.0


class Shows(Protocol):
    """What is needed of a client."""

    def show(self, what: str, **args: Any) -> Any:
        """An answer of `show`."""


class FlowCount:
    """What one flow counted since it was last looked at."""

    def __init__(self) -> None:
        self._periods = self._violated = self._stalled = 0
        self._excess = 0.0
        self._max_ns = 0
        self.slo_ns = 0

    def grown(self, row: Json) -> tuple[int, int, int, float, int]:
        """Periods, violated ones that the machine did not cause, others, excess, worst delay."""
        periods = int(row["periods"] or 0)
        violated, stalled = int(row["violated_periods"] or 0), int(row["stalled_periods"] or 0)
        own = violated - stalled
        excess = float(row["excess_ratio"] or 0.0) * own
        max_ns = int(row["delay_max_ns"] or 0)
        if periods < self._periods or int(row["slo_ns"]) != self.slo_ns:
            self._periods = self._violated = self._stalled = self._max_ns = 0
            self._excess = 0.0
            self.slo_ns = int(row["slo_ns"])
        result = (
            periods - self._periods,
            max(own - (self._violated - self._stalled), 0),
            max(stalled - self._stalled, 0),
            max(excess - self._excess, 0.0),
            max_ns if max_ns > self._max_ns else 0,
        )
        self._periods, self._violated, self._stalled = periods, violated, stalled
        self._excess, self._max_ns = excess, max(max_ns, self._max_ns)
        return result


class PeriodReader:
    """Reads once a period; sums up, and keeps columns over time where something is watched."""

    def __init__(self, client: Shows, case: Case):
        self._client = client
        self._case = case
        self._flows: dict[str, FlowCount] = {}
        self._periods = self._violated = self._stalled = 0
        self._excess: list[float] = []
        self._delays_ns: list[float] = []
        self._worst_ns = 0
        self._sent: tuple[int, int] | None = None
        self.series: dict[str, list[Any]] = {}
        for row in self._rows():
            self._flows[row["flow"]] = count = FlowCount()
            count.grown(row)
        if self._is_watching():
            self._rate()

    def _is_watching(self) -> bool:
        return bool(self._case.watched_module or self._case.watched_flow)

    def _rows(self) -> list[Json]:
        rows: list[Json] = self._client.show("slo")
        return rows

    def read(self, time_ns: int) -> None:
        """What happened since the last call, as the period that ends at this time."""
        most = [0, 0, 0]
        worst_ns = 0
        watched: Json = {}
        for row in self._rows():
            count = self._flows.setdefault(row["flow"], FlowCount())
            periods, own, stalled, excess, max_ns = count.grown(row)
            if row["flow"] == self._case.watched_flow:
                watched = row
            if periods and row.get("delay_ns"):
                self._delays_ns.append(float(row["delay_ns"]))
                worst_ns = max(worst_ns, int(row["delay_ns"]), max_ns)
            most[0] = max(most[0], periods)
            if not count.slo_ns:
                continue
            most[1:] = [max(most[1], own), max(most[2], stalled)]
            if own:
                self._excess.append(excess / own)
        self._periods += most[0]
        # A period is violated when any flow was late in it.
        self._violated += min(most[1], most[0])
        self._stalled += min(most[2], most[0])
        self._worst_ns = max(self._worst_ns, worst_ns)
        if self._is_watching():
            self._note(time_ns, most[1] > 0, worst_ns, watched)

    def _note(self, time_ns: int, is_violated: bool, worst_ns: int, watched: Json) -> None:
        values: Json = {
            "time_ns": time_ns,
            "out_pps": self._rate(),
            "is_violated": is_violated,
            "worst_delay_ns": worst_ns,
        }
        if self._case.watched_flow:
            values["delay_ns"] = int(watched.get("delay_ns") or 0)
            values["slo_ns"] = int(watched.get("slo_ns") or 0)
            values["delay_max_ns"] = int(watched.get("delay_max_ns") or 0)
        if self._case.watched_module:
            rows = self._client.show("buffers")["buffers"]
            triggers = [r["trigger_pkts"] for r in rows if r["module"] == self._case.watched_module]
            values["trigger_pkts"] = int(triggers[0]) if triggers else 0
        for key, value in values.items():
            self.series.setdefault(key, []).append(value)

    def _rate(self) -> float:
        runtime = self._client.show("runtime")
        now = (int(runtime["now_ns"]), int(runtime["balance"]["sent_pkts"]))
        before, self._sent = self._sent, now
        if before is None or now[0] <= before[0]:
            return 0.0
        return (now[1] - before[1]) * 1e9 / (now[0] - before[0])

    def summary(self) -> Json:
        """As of a simulated case; disturbed periods count for nothing but their number."""
        has_promise = any(count.slo_ns for count in self._flows.values())
        return {
            "periods": self._periods,
            "delay_mean_of_periods_ns": undisturbed_mean(self._delays_ns),
            "delay_max_ns": self._worst_ns or None,
            "violated_ratio": self._violated / max(self._periods, 1) if has_promise else None,
            "stalled_ratio": self._stalled / max(self._periods, 1),
            "excess_mean_ratio": statistics.fmean(self._excess) if self._excess else 0.0,
            "excess_max_ratio": max(self._excess, default=0.0),
        }


def undisturbed_mean(values: list[float]) -> float | None:
    """The mean without values far above the median."""
    if not values:
        return None
    most = _MOST_OF_MEDIAN * statistics.median(values)
    return statistics.fmean(value for value in values if value <= most)
