# SPDX-License-Identifier: BSD-3-Clause
"""replay.py - how long captures are replayed: until all of them is in, or until the run ends.

A capture that comes faster than the worker takes it lasts longer than its own times say.
"""

from __future__ import annotations

from ..native.loader import NativeSimulation

# Beyond the captures' own end it is looked so often whether all is in.
_HOP_NS = 10_000
# What takes no packet for so long (a generator that is off, say) never will.
_PATIENCE_NS = 1_000_000_000


class Replay:
    """Of one run; without captures there is nothing to do."""

    def __init__(self, native: NativeSimulation, is_until_used: bool):
        """`is_until_used`: nobody has said how long the run is."""
        self._native = native
        self._is_until_used = is_until_used
        self._left_pkts = native.unreplayed_pkts
        self._moved_ns = native.now_ns

    def end_ns(self, end_ns: int, next_ns: int) -> int:
        """The run's end, once it is reached: further on while packets of captures are outside.

        Goes on itself, until `next_ns` at most, where the period ends.
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
        """What is to be said when the traffic ends here."""
        left_pkts = self._native.unreplayed_pkts
        if not left_pkts:
            return []
        why = "there was no room for them" if self._is_until_used else "the run ended first"
        return [f"{left_pkts} packets of the capture were not replayed: {why}"]
