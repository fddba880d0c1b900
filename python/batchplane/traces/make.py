# SPDX-License-Identifier: BSD-3-Clause
"""make.py - generates a trace in chunks: time, size and session of each packet.

A chunk is a stretch of the sessions' own time in which about CHUNK_PKTS packets are due. A session
spreads its packets evenly over its life. Within a chunk they form trains, so that the mean run of
one flow has the wanted length, and the trains are shuffled. Memory is bounded by the live sessions
and one chunk, however long the trace is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .model import (
    TraceModel,
    checked,
    destination_addresses,
    draw_durations_s,
    draw_packet_bytes,
    draw_session_packets,
    mean_packet_bytes,
    mean_session_packets,
    zipf_shares,
)

CHUNK_PKTS = 1 << 16
_WIRE_EXTRA_BYTES = 20  # preamble and inter-frame gap
_LINK_BPS = 10e9
_MAX_SESSION_SHARE = 0.1  # of the packets; a larger session gets a longer life instead
_MAX_LINK_SHARE = 0.8  # if packets would fill more of the link, it is faster


@dataclass
class Sessions:
    """Some sessions, as columns."""

    id: NDArray[np.int64]
    start_s: NDArray[np.float64]
    life_s: NDArray[np.float64]
    packets: NDArray[np.int64]
    sent: NDArray[np.int64]
    phase: NDArray[np.float64]  # position of its start between two packets
    dst: NDArray[np.int32]  # rank of its destination

    def __len__(self) -> int:
        return len(self.id)

    def kept(self, which: NDArray[np.bool_]) -> Sessions:
        """The sessions selected by the mask."""
        return Sessions(*(getattr(self, f.name)[which] for f in fields(self)))

    def joined(self, other: Sessions) -> Sessions:
        """These sessions and the others."""
        return Sessions(
            *(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self))
        )


@dataclass(frozen=True)
class MadeChunk:
    """Packets in order of time."""

    time_ns: NDArray[np.int64]  # from 0
    size_bytes: NDArray[np.int32]  # on the wire
    session: NDArray[np.int64]  # a unique number for each session
    dst: NDArray[np.int32]  # rank of the destination


class TraceMaker:
    """Iterates over chunks; the same model and seed give the same packets."""

    def __init__(self, model: TraceModel):
        self.model = checked(model)
        seeds = np.random.SeedSequence(model.seed).spawn(2)
        self.addresses = destination_addresses(model.destinations, np.random.default_rng(seeds[0]))
        self._rng = np.random.default_rng(seeds[1])
        self._cumulated = np.cumsum(zipf_shares(model.destinations, model.zipf))
        self._per_s = model.rate_pps / mean_session_packets(model)  # sessions
        self._next_id = 0

    def __iter__(self) -> Iterator[MadeChunk]:
        model = self.model
        alive = self._before()
        now_s, now_ns, left = 0.0, 0.0, model.packets
        step_s = CHUNK_PKTS / model.rate_pps
        while left:
            end_s = now_s + step_s
            alive = alive.joined(self._arrivals(now_s, end_s))
            due = np.minimum(
                np.floor(alive.packets * ((end_s - alive.start_s) / alive.life_s) + alive.phase),
                alive.packets,
            ).astype(np.int64)
            counts = due - alive.sent
            session = self._order(counts)
            if len(session):
                session = session[:left]
                left -= len(session)
                time_ns, sizes, now_ns = self._times(session, now_ns)
                yield MadeChunk(time_ns, sizes, alive.id[session], alive.dst[session])
            alive.sent = due
            alive = alive.kept(alive.sent < alive.packets)
            now_s = end_s

    def _draw(self, starts_s: NDArray[np.float64]) -> Sessions:
        n, rng = len(starts_s), self._rng
        ids = np.arange(self._next_id, self._next_id + n, dtype=np.int64)
        self._next_id += n
        packets = draw_session_packets(self.model, rng, n)
        min_s = packets / (_MAX_SESSION_SHARE * self.model.rate_pps)
        return Sessions(
            ids,
            starts_s,
            np.maximum(draw_durations_s(self.model, rng, n), min_s),
            packets,
            np.zeros(n, np.int64),
            rng.random(n),
            np.searchsorted(self._cumulated, rng.random(n)).clip(0, len(self._cumulated) - 1)
            .astype(np.int32),
        )  # fmt: skip

    def _arrivals(self, from_s: float, to_s: float) -> Sessions:
        n = self._rng.poisson(self._per_s * (to_s - from_s))
        return self._draw(np.sort(self._rng.uniform(from_s, to_s, n)))

    def _before(self) -> Sessions:
        """Live sessions that began before the trace, so that it starts in the steady state."""
        alive = self._draw(np.empty(0))
        step_s = max(self.model.session_mean_s / 4, self.model.session_max_s / 64)
        steps = math.ceil(self.model.session_max_s / step_s)
        for i in range(steps):
            came = self._arrivals(-(i + 1) * step_s, -i * step_s)
            came.sent = np.minimum(
                np.floor(came.packets * (-came.start_s / came.life_s) + came.phase), came.packets
            ).astype(np.int64)
            alive = alive.joined(came.kept(came.sent < came.packets))
        return alive

    def _order(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The session of each packet, in shuffled trains."""
        who = np.flatnonzero(counts)
        session = np.repeat(who, counts[who])
        n = len(session)
        if n < 2:
            return session
        is_first = np.empty(n, bool)
        is_first[0] = True
        is_first[1:] = session[1:] != session[:-1]
        p = new_train_share(counts[who], self.model.burstiness)
        starts = is_first | (self._rng.random(n) < p)
        train = np.cumsum(starts) - 1
        keys = self._rng.random(int(train[-1]) + 1)[train]
        return session[np.argsort(keys, kind="stable")]

    def _times(
        self, session: NDArray[np.int64], now_ns: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], float]:
        """Times and sizes: packets of a train follow at line rate, with random idle times between
        trains."""
        n = len(session)
        sizes = draw_packet_bytes(self._rng, n)
        length_ns = n / self.model.rate_pps * 1e9
        wire_ns = (sizes + _WIRE_EXTRA_BYTES) * 8e9 / _LINK_BPS
        mean_ns = (mean_packet_bytes() + _WIRE_EXTRA_BYTES) * 8e9 / _LINK_BPS
        wire_ns *= min(1.0, _MAX_LINK_SHARE * 1e9 / self.model.rate_pps / mean_ns)
        is_new = np.ones(n, bool)
        is_new[1:] = session[1:] != session[:-1]
        idle = self._rng.exponential(size=n) * is_new
        idle *= max(0.0, length_ns - float(wire_ns.sum())) / float(idle.sum())
        ends = np.cumsum(idle + wire_ns)
        times = np.floor(now_ns + ends - wire_ns).astype(np.int64)
        return times, sizes, now_ns + max(float(ends[-1]), length_ns)


def new_train_share(counts: NDArray[np.int64], burstiness: float) -> float:
    """The probability with which a packet of a session begins a new train, for the wanted mean run.

    `counts` are the packets of each session. Two adjacent trains of one session are one run: of M
    shuffled trains that happens to a share of sum m (m - 1) / (M (M - 1)).
    """
    n, n_sessions = int(counts.sum()), len(counts)
    if n == n_sessions:
        return 1.0
    met, p = 0.0, 1.0
    for _ in range(8):
        p = (n / (burstiness * max(1 - met, 1e-9)) - n_sessions) / (n - n_sessions)
        p = min(max(p, 0.0), 1.0)
        trains = 1 + (counts - 1) * p
        total = float(trains.sum())
        # The expected m (m - 1) of a random m: from its mean and its variance.
        spread = float((trains * (trains - 1) + (counts - 1) * p * (1 - p)).sum())
        met = spread / (total * max(total - 1, 1))
    return p
