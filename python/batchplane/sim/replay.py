# SPDX-License-Identifier: BSD-3-Clause
"""replay.py - how long captures are replayed: until every packet is in, or until the run ends.

A capture that is faster than the worker lasts longer than its own timestamps.
"""

from __future__ import annotations

from ..native.loader import NativeSimulation

# After the captures' own end, how often to check whether every packet is in.
_HOP_NS = 10_000
# If no packet is taken for so long, none ever will be: a generator may be off.
_PATIENCE_NS = 1_000_000_000


class Replay:
    """The replay of one run; without captures it does nothing."""

    def __init__(self, native: NativeSimulation, is_until_used: bool):
        """`is_until_used`: the run has no given length."""
        self._native = native
        self._is_until_used = is_until_used
        self._left_pkts = native.unreplayed_pkts
        self._moved_ns = native.now_ns

    def end_ns(self, end_ns: int, next_ns: int) -> int:
        """The run's end; it is moved on while packets of captures are left.

        Advances the simulation itself, up to `next_ns`, the end of the period.
        """
        if not self._is_until_used or self._native.now_ns < end_ns:
            return end_ns
        while (left_pkts := self._native.unreplayed_pkts) != 0:
            now_ns = self._native.now_ns
            if left_pkts != self._left_pkts:
                self._left_pkts, self._moved_ns = left_pkts, now_ns
            elif now_ns - self._moved_ns >= _PATIENCE_NS:
                break
            if now_ns >= next_ns:
                return now_ns + 1
            self._native.run_until(min(now_ns + _HOP_NS, next_ns))
        return self._native.now_ns

    def warnings(self) -> list[str]:
        """Warnings, if the traffic ends here."""
        left_pkts = self._native.unreplayed_pkts
        if not left_pkts:
            return []
        why = "there was no room for them" if self._is_until_used else "the run ended first"
        return [f"{left_pkts} packets of the capture were not replayed: {why}"]
