# SPDX-License-Identifier: BSD-3-Clause
"""watched.py - one flow within its share next to others that never pause, in virtual time.

Latencies are in packet times of the link, so that they hold for any link rate.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...egress.replay import Arrivals, Flows, Replayed, replay

PKT_BYTES = 60
# A bit takes 1 ns at 1 Gbit/s, so a packet of 60 bytes takes 480 ns.
RATE_BPS = 1_000_000_000
PKT_NS = PKT_BYTES * 8
FIFO_QUEUE_PKTS = 3  # that each other flow keeps queued if no scheduler holds it back


@dataclass(frozen=True)
class Watched:
    """A flow of some weight at part of its share, next to n others of weight 1 at full rate."""

    weight: int
    others: int
    part_of_share: float = 0.5

    @property
    def label(self) -> str:
        """The label in tables."""
        return f"{self.weight} : {self.others} x 1"

    @property
    def share(self) -> float:
        """The flow's share of the link."""
        return self.weight / (self.weight + self.others)


def latencies_pkts(discipline: str, load: Watched, n_pkts: int, seed: int = 1) -> list[float]:
    """Delays from the arrival of each watched packet to the start of its transmission, sorted."""
    flows = Flows(
        names=[str(k) for k in range(load.others + 1)],
        weight=[load.weight] + [1] * load.others,
        lmax_bytes=[PKT_BYTES] * (load.others + 1),
        limit_pkts=[1 << 30] * (load.others + 1),
    )
    arrivals = (
        _fifo_arrivals(load, n_pkts, seed)
        if discipline == "fifo"
        else _arrivals(load, n_pkts, seed)
    )
    return _waits(replay(discipline, flows, arrivals, RATE_BPS), arrivals)


def _times_ns(load: Watched, n_pkts: int, seed: int) -> list[int]:
    """Evenly spaced times with jitter within each interval, to avoid lockstep with the link."""
    rng = random.Random(seed)
    interval_ns = PKT_NS / (load.share * load.part_of_share)
    return [int((k + rng.random()) * interval_ns) for k in range(n_pkts)]


def _arrivals(load: Watched, n_pkts: int, seed: int) -> Arrivals:
    """The other flows' packets are all queued from the start."""
    times = _times_ns(load, n_pkts, seed)
    left = 1 - load.share * load.part_of_share
    each = int(times[-1] / PKT_NS * left / load.others) + 20
    arrivals = Arrivals()
    for flow in range(1, load.others + 1):
        arrivals.ns += [0] * each
        arrivals.flow += [flow] * each
    arrivals.ns += times
    arrivals.flow += [0] * n_pkts
    arrivals.len_bytes = [PKT_BYTES] * len(arrivals.ns)
    return arrivals


def _fifo_arrivals(load: Watched, n_pkts: int, seed: int) -> Arrivals:
    """Each other flow enqueues a packet whenever one of its own leaves, so each has three queued.

    In a FIFO that is the order of arrival, so the times follow from the queue's length.
    """
    waiting = load.others * FIFO_QUEUE_PKTS
    rows: list[tuple[int, int]] = [(0, 1 + k % load.others) for k in range(waiting)]
    times = iter(_times_ns(load, n_pkts, seed))
    order = [flow for _, flow in rows]
    next_ns = next(times)
    now_ns, served = 0, 0
    while True:
        while next_ns <= now_ns:
            rows.append((next_ns, 0))
            order.append(0)
            following = next(times, None)
            if following is None:
                return _as_arrivals(rows)
            next_ns = following
        flow = order[served]
        served += 1
        now_ns += PKT_NS
        if flow != 0:
            rows.append((now_ns, flow))
            order.append(flow)


def _as_arrivals(rows: list[tuple[int, int]]) -> Arrivals:
    rows = sorted(rows, key=lambda row: row[0])
    return Arrivals([ns for ns, _ in rows], [flow for _, flow in rows], [PKT_BYTES] * len(rows))


def _waits(result: Replayed, arrivals: Arrivals) -> list[float]:
    came = [ns for ns, flow in zip(arrivals.ns, arrivals.flow, strict=True) if flow == 0]
    left = [ns for ns, flow in zip(result.release_ns, result.flow, strict=True) if flow == 0]
    return sorted((out - at) / PKT_NS for at, out in zip(came, left, strict=False))
