# SPDX-License-Identifier: BSD-3-Clause
"""daemon_periods.py - how well a daemon met its SLOs: over a run, and by period.

The daemon counts by itself, so that queries do not disturb a run. It is queried once per period
only if something is watched over time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from .case import Case

Json = dict[str, Any]


class Asked(Protocol):
    """The methods of a client that are needed here."""

    def show(self, what: str, **args: Any) -> Any:
        """An answer of `show`."""

    def request(self, cmd: str, timeout_s: float | None = None, **args: Any) -> Any:
        """Any other request."""


def kept_promises(first: Json, last: Json) -> Json:
    """The SLOs between two `show all` under one controller, with the keys of a simulated case.

    Violations are those of quiet periods; those of all periods have their own keys.
    """
    counts = {
        key: int(last["control"]["any_flow"][key]) - int(first["control"]["any_flow"][key])
        for key in ("periods", "violated_periods", "quiet_periods", "violated_quiet_periods")
    }
    old = {row["flow"]: row for row in first["slo"]}
    delay_sum_ns = delays = excess_sum = excesses = excess_max = 0.0
    for row in last["slo"]:
        before = old.get(row["flow"], {})
        sums, numbers = _grown(before, row, "period_delay_mean_ns", _quiet)
        delay_sum_ns, delays = delay_sum_ns + sums, delays + numbers
        sums, numbers = _grown(before, row, "excess_ratio", _excessive)
        excess_sum, excesses = excess_sum + sums, excesses + numbers
        excess_max = max(excess_max, sums / numbers if numbers else 0.0)
    periods, quiet = max(counts["periods"], 1), counts["quiet_periods"]
    has_promise = any(row["slo_ns"] for row in last["slo"])
    now_ns = [float(row["delay_ns"]) for row in last["slo"] if row.get("delay_ns")]
    # Without a quiet period, use the last one: the run is repeated anyway.
    delay_ns = delay_sum_ns / delays if delays else sum(now_ns) / max(len(now_ns), 1)
    violated = counts["violated_quiet_periods"] / quiet if quiet else None
    return {
        "periods": counts["periods"],
        "stalled_ratio": 1.0 - quiet / periods,
        "violated_ratio": violated if has_promise else None,
        "violated_all_ratio": counts["violated_periods"] / periods if has_promise else None,
        "delay_mean_of_periods_ns": delay_ns,
        "delay_max_ns": max((int(row["delay_max_ns"] or 0) for row in last["slo"]), default=0),
        "excess_mean_ratio": excess_sum / excesses if excesses else 0.0,
        "excess_max_ratio": excess_max,
    }


def _quiet(row: Json) -> int:
    return int(row.get("quiet_periods") or 0)


def _excessive(row: Json) -> int:
    return int(row.get("violated_periods") or 0) - int(row.get("stalled_periods") or 0)


def _grown(before: Json, row: Json, mean: str, number: Callable[[Json], int]) -> tuple[float, int]:
    """Sum and number of the averaged values since `before`; reset counters are taken whole."""
    if number(before) > number(row):
        before = {}
    grown = number(row) - number(before)
    whole = float(row.get(mean) or 0.0) * number(row)
    return whole - float(before.get(mean) or 0.0) * number(before), grown


class PeriodWatch:
    """Columns over time, like those of a simulated case; queries the daemon once per period."""

    def __init__(self, client: Asked, case: Case, now_s: Callable[[], float] = time.monotonic):
        self._client = client
        self._case = case
        self._now_s = now_s
        self._violated = self._counts()
        self._sent = (now_s(), self._sent_pkts())
        self._max_ns: dict[str, int] = {}
        self.series: dict[str, list[Any]] = {}
        self._worst_ns(client.show("slo"))

    def read(self, time_ns: int) -> None:
        """Records everything since the last call, as the period that ends at this time."""
        rows: list[Json] = self._client.show("slo")
        violated = self._counts()
        now = (self._now_s(), self._sent_pkts())
        passed_s = max(now[0] - self._sent[0], 1e-6)
        values: Json = {
            "time_ns": time_ns,
            "out_pps": (now[1] - self._sent[1]) / passed_s,
            "is_violated": violated > self._violated,
            "worst_delay_ns": self._worst_ns(rows),
        }
        self._violated, self._sent = violated, now
        for row in rows:
            if row["flow"] == self._case.watched_flow:
                for key in ("delay_ns", "slo_ns", "delay_max_ns"):
                    values[key] = int(row.get(key) or 0)
        if self._case.watched_module:
            values["trigger_pkts"] = self._trigger_pkts()
        for key, value in values.items():
            self.series.setdefault(key, []).append(value)

    def _counts(self) -> int:
        return int(self._client.show("control")["any_flow"]["violated_quiet_periods"])

    def _sent_pkts(self) -> int:
        """Packets that entered; the ring before the pipeline holds at most 64 more."""
        return sum(int(row["sent_pkts"]) for row in self._client.show("generators"))

    def _worst_ns(self, rows: list[Json]) -> int:
        """The worst delay of the period if it is the worst so far, otherwise the percentile."""
        worst = 0
        for row in rows:
            most = int(row.get("delay_max_ns") or 0)
            before = self._max_ns.get(row["flow"], 0)
            worst = max(worst, int(row.get("delay_ns") or 0), most if most > before else 0)
            self._max_ns[row["flow"]] = most
        return worst

    def _trigger_pkts(self) -> int:
        told = self._client.request("explain", name=self._case.watched_module)
        return int(told["modules"][0]["trigger_pkts"]) if told["modules"] else 0
