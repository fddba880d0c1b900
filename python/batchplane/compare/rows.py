# SPDX-License-Identifier: BSD-3-Clause
"""rows.py - the results of one controller under a load, from two snapshots of a daemon."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..show.rates import Snapshot

# Of the time. From here on, interruptions by the machine are reported.
_HELD_UP_TOLD = 0.02
# If fewer periods than this share, or this number, are undisturbed, all periods count.
_MIN_SHARE, _MIN_PERIODS = 0.05, 10


@dataclass(frozen=True)
class Row:
    """Rate, batches and the worst flow, without the time that the machine took from the worker."""

    controller: str
    rate_pps: float
    batch_mean_pkts: float | None
    slo_ns: int | None
    p50_ns: float | None  # of the flow whose delay comes closest to its SLO, or exceeds it most
    p95_ns: float | None
    worst_flow: str
    late_ratio: float | None
    periods: int
    violated_periods: int
    held_up_ratio: float  # of the time, by the machine
    n_flows: int
    is_undisturbed: bool = True  # delays of periods without interruptions by the machine
    turn_rates_pps: tuple[float, ...] = ()  # if it had several turns

    @property
    def of_slo(self) -> float | None:
        """The p95 of the worst flow as a fraction of its SLO."""
        if not self.slo_ns or self.p95_ns is None:
            return None
        return self.p95_ns / self.slo_ns

    @property
    def is_kept(self) -> bool | None:
        """Whether the p95 of the worst flow is within its SLO; None without an SLO."""
        return None if self.of_slo is None else self.of_slo <= 1.0

    @property
    def is_disturbed(self) -> bool:
        """Whether the machine held the worker up for too long to be ignored."""
        return self.held_up_ratio > _HELD_UP_TOLD

    def ratio_to(self, base: Row) -> float:
        """Its rate over another one's: the median over the turns, so that both had the same moments
        of the machine."""
        return statistics.median(self.ratios_to(base))

    def ratios_to(self, base: Row) -> list[float]:
        """The same in each turn."""
        mine, others = self.turn_rates_pps, base.turn_rates_pps
        pairs = [*zip(mine, others, strict=False)] or [(self.rate_pps, base.rate_pps)]
        return [a / b if b else 0.0 for a, b in pairs]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "is_kept": self.is_kept}


def merged(turns: Sequence[Row]) -> Row:
    """All turns of a controller, equally long: rates are means, delays medians."""
    last = turns[-1]
    if len(turns) == 1:
        return last
    rates_pps = [row.rate_pps for row in turns]
    batches = [row.rate_pps / row.batch_mean_pkts for row in turns if row.batch_mean_pkts]
    # Without a flow that has an SLO there is no delay either.
    late, p50_ns, p95_ns = (
        [value for row in turns if (value := getattr(row, key)) is not None]
        for key in ("late_ratio", "p50_ns", "p95_ns")
    )
    return replace(
        last,
        rate_pps=statistics.mean(rates_pps),
        batch_mean_pkts=sum(rates_pps) / sum(batches) if len(batches) == len(turns) else None,
        p50_ns=statistics.median(p50_ns) if p50_ns else None,
        p95_ns=statistics.median(p95_ns) if p95_ns else None,
        late_ratio=statistics.mean(late) if late else None,
        periods=sum(row.periods for row in turns),
        violated_periods=sum(row.violated_periods for row in turns),
        held_up_ratio=statistics.mean(row.held_up_ratio for row in turns),
        is_undisturbed=all(row.is_undisturbed for row in turns),
        turn_rates_pps=tuple(rates_pps),
    )


def row_between(
    controller: str, first: Snapshot, last: Snapshot, controlled: frozenset[str]
) -> Row:
    """What happened between two `show all` answers under one controller."""
    elapsed_ns = max(last["runtime"]["now_ns"] - first["runtime"]["now_ns"], 1)
    gaps_ns = [
        now["gaps"]["sum_ns"] - before["gaps"]["sum_ns"]
        for before, now in zip(
            first["runtime"]["workers"], last["runtime"]["workers"], strict=False
        )
    ]
    held_up_ratio = min(max(gaps_ns, default=0) / elapsed_ns, 0.99)
    came = last["runtime"]["balance"]["sent_pkts"] - first["runtime"]["balance"]["sent_pkts"]
    promised = [row for row in last["slo"] if row["slo_ns"] and row.get("undisturbed")]
    periods = max((row["counted"]["periods"] for row in promised), default=0)
    quiet = max((row["undisturbed"]["periods"] for row in promised), default=0)
    is_undisturbed = quiet >= max(_MIN_PERIODS, _MIN_SHARE * periods)
    which = "undisturbed" if is_undisturbed else "counted"
    worst = max(promised, key=lambda row: _share(row, which), default=None)
    found = worst[which] if worst else {}
    return Row(
        controller=controller,
        rate_pps=came / (elapsed_ns * (1 - held_up_ratio)) * 1e9,
        batch_mean_pkts=_batch_mean(first, last, controlled),
        slo_ns=worst["slo_ns"] if worst else None,
        p50_ns=found.get("p50_ns"),
        p95_ns=found.get("p95_ns"),
        worst_flow=worst["flow"] if worst else "",
        late_ratio=found["late_pkts"] / found["pkts"] if found.get("pkts") else None,
        periods=max((row[which]["periods"] for row in promised), default=0),
        violated_periods=max((row[which]["violated_periods"] for row in promised), default=0),
        held_up_ratio=held_up_ratio,
        n_flows=len(promised),
        is_undisturbed=is_undisturbed,
    )


def _share(row: dict[str, Any], which: str) -> float:
    return float(row[which].get("p95_ns") or 0) / float(row["slo_ns"])


def _batch_mean(first: Snapshot, last: Snapshot, controlled: Iterable[str]) -> float | None:
    """The mean batch of the modules whose buffers a controller sets."""
    names = set(controlled)
    before = {row["name"]: row for row in first["runtime"]["modules"]}
    pkts = batches = 0
    for row in last["runtime"]["modules"]:
        if row["name"] in names and row["name"] in before:
            pkts += row["pkts"] - before[row["name"]]["pkts"]
            batches += row["batches"] - before[row["name"]]["batches"]
    return pkts / batches if batches else None
