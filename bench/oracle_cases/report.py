# SPDX-License-Identifier: BSD-3-Clause
"""report.py - the output of tables: a row for each point, a summary for each controller."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fixed_triggers import Triggers

from .runs import MAX_VIOLATED, Run


@dataclass(frozen=True)
class Row:
    """One point of a table: its description, the best fixed triggers, a run of each controller."""

    told: str
    best: Run | None  # None: no fixed triggers meet the SLO
    triggers: Triggers
    runs: dict[str, Run]
    has_room: bool = True  # some fixed triggers meet a shorter SLO
    rivals: Mapping[Triggers, Run] = field(default_factory=dict)  # other fixed triggers

    def ratio(self, name: str) -> float:
        """The controller's rate relative to that of the fixed triggers."""
        return self.runs[name].rate_pps / self.best.rate_pps if self.best else float("nan")


def shown_triggers(triggers: Triggers) -> str:
    """The trigger of each class, and its decrease within a class."""
    *of_classes, spread = triggers
    shown = str(of_classes) if len(of_classes) <= 3 else f"{len(of_classes)} classes"
    return f"{shown} -{spread}" if spread else shown


def line(row: Row) -> str:
    """The printed row: ratio, violated periods and settling period of each controller."""
    best = "nothing keeps it"
    if row.best:
        shown = shown_triggers(row.triggers)
        best = f"best {row.best.rate_pps / 1e6:6.2f} Mpps {row.best.violated:5.1%} {shown:16}"
    columns = [
        f"{name} {row.ratio(name):.3f} {run.violated:5.1%} {run.settled:3}"
        for name, run in row.runs.items()
    ]
    return " | ".join([row.told, best, *columns])


def summary(name: str, rows: Sequence[Row]) -> str:
    """One controller, over the points that fixed triggers meet."""
    kept = [row for row in rows if row.best]
    if not kept:
        return f"{name}: no point that fixed triggers keep"
    ratios = sorted(row.ratio(name) for row in kept)
    runs = [row.runs[name] for row in kept]
    more = sum(
        row.runs[name].violated > max(MAX_VIOLATED, row.best.violated) for row in kept if row.best
    )
    return (
        f"{name}: mean {statistics.mean(ratios):.3f}, least {ratios[0]:.3f}, "
        f"10th percentile {ratios[len(ratios) // 10]:.3f} of the best fixed triggers; "
        f"{statistics.mean(run.violated for run in runs):.2%} of periods violated "
        f"(fixed {statistics.mean(row.best.violated for row in kept if row.best):.2%}), "
        f"more than 0.5 % and more than fixed in {more} of {len(kept)}; "
        f"settled within 3 periods {sum(run.settled <= 3 for run in runs) / len(runs):.0%}; "
        f"late in each of the last 20 periods in {sum(run.is_late_to_the_end for run in runs)}"
    )
