# SPDX-License-Identifier: BSD-3-Clause
"""models.py - in virtual time: TCP-like senders at a queue, and trees that are always full."""

from __future__ import annotations

from dataclasses import dataclass

from ..native.loader import load_native

CLASSES = 4  # of each subscriber, with weights 1 to 4
LONGEST_BYTES = 1500


@dataclass(frozen=True)
class LineResult:
    """The waiting time of pings in a line's queue, and the line's utilisation."""

    ping_p50_ms: float
    ping_p95_ms: float
    goodput: float


def line_model(queue: str, marks: bool = False, seconds: int = 20) -> LineResult:
    """Four senders over 100 Mbit/s and 20 ms round trip; `queue`: fifo, codel or fq_codel."""
    return LineResult(*load_native().egress_line_model(queue, marks, seconds))


def full_tree(
    subscribers: int, link_bps: int, ceil_bps: int, is_mixed: bool, times_ns: list[int]
) -> list[list[int]]:
    """Bytes of each class of each subscriber at these times; `ceil_bps` 0: no ceilings."""
    sent: list[list[int]] = load_native().egress_full_tree(
        subscribers, link_bps, ceil_bps, is_mixed, times_ns
    )
    return sent
