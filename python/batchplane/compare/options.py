# SPDX-License-Identifier: BSD-3-Clause
"""options.py - what to compare, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from ..commands.start import RunOptions


@dataclass(frozen=True)
class CompareOptions:
    """Which controllers, each for how long in all, in how many turns; the rest is as for `run`."""

    run: RunOptions
    controllers: tuple[str, ...] = ("null", "max", "optimal")
    each_s: float = 5.0
    as_json: bool = False
    simulate: str | None = None
    max_turns: int = 3

    @property
    def turns(self) -> int:
        """Turns of each controller; none is shorter than a second, unless it is the only one."""
        return max(1, min(self.max_turns, int(self.each_s)))
