# SPDX-License-Identifier: BSD-3-Clause
"""experiment.py - what an experiment is: cases in stages, then numbers, claims and a figure.

plan(setup) is a generator: it yields lists of cases, is sent their results by key, and returns the
Outcome. So later cases may depend on results of earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...costs.keys import cpu_name
from .case import Case
from .verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, dict[str, Any]]
Row = dict[str, Any]

SIMULATED, MEASURED = "simulated", "measured"
BOTH = (SIMULATED, MEASURED)


@dataclass(frozen=True)
class Setup:
    """What the user chose for all experiments of a command."""

    costs: str = "prior"
    is_quick: bool = False
    is_measured: bool = False

    @property
    def label(self) -> str:
        """Of all numbers: simulated or measured, never both."""
        return MEASURED if self.is_measured else SIMULATED

    @property
    def origin(self) -> str:
        """Where numbers come from, for figures and tables."""
        if self.is_measured:
            return f"measured on {cpu_name()}"
        return f"simulated, costs: {Path(self.costs).name}"


@dataclass
class Outcome:
    """What came of an experiment."""

    rows: list[Row]  # the table, and the CSV file
    columns: Sequence[tuple[str, str, Callable[[Any], str]]]  # key, heading, how it is shown
    verdicts: list[Verdict]
    draw: Callable[[], Figure]
    series: dict[str, Any] = field(default_factory=dict)  # columns over time, by case


Plan = Callable[[Setup], Generator[list[Case], Results, Outcome]]


@dataclass(frozen=True)
class Experiment:
    """One experiment of the papers, or beside them."""

    name: str
    title: str
    plan: Plan
    figure: str  # the stem of its figure's file
    controllers: tuple[str, ...]
    note: str = ""  # how the set-up differs from the papers', one sentence
    runs: tuple[str, ...] = (SIMULATED,)  # the ways to run it, the usual one first
    needs: tuple[str, ...] = ()  # pipelines without which `all` leaves it out


def shown(value: Any) -> str:
    """Words as they are."""
    return str(value)
