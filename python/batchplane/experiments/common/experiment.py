# SPDX-License-Identifier: BSD-3-Clause
"""experiment.py - the form of an experiment: cases in stages, then numbers, claims and a figure.

plan(setup) is a generator: it yields lists of cases, is sent their results by key, and returns the
Outcome. Later cases may thus depend on the results of earlier ones.
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
    """The user's choices for all experiments of a command."""

    costs: str = "prior"  # empty: those that the experiment itself prescribes
    is_quick: bool = False
    is_measured: bool = False

    @property
    def label(self) -> str:
        """The label of all numbers: simulated or measured, never mixed."""
        return MEASURED if self.is_measured else SIMULATED

    @property
    def origin(self) -> str:
        """The origin of the numbers, for figures and tables."""
        if self.is_measured:
            return f"measured on {cpu_name()}"
        if not self.costs:
            return "simulated, costs prescribed by the experiment"
        return f"simulated, costs: {Path(self.costs).name}"


@dataclass
class Outcome:
    """The results of an experiment."""

    rows: list[Row]  # for the table and the CSV file
    columns: Sequence[tuple[str, str, Callable[[Any], str]]]  # key, heading, formatter
    verdicts: list[Verdict]
    draw: Callable[[], Figure]
    series: dict[str, Any] = field(default_factory=dict)  # columns over time, by case


Plan = Callable[[Setup], Generator[list[Case], Results, Outcome]]


@dataclass(frozen=True)
class Experiment:
    """One experiment, from the papers or beyond them."""

    name: str
    title: str
    plan: Plan
    figure: str  # the stem of the figure's file name
    controllers: tuple[str, ...]
    note: str = ""  # how the setup differs from the papers', one sentence
    runs: tuple[str, ...] = (SIMULATED,)  # possible labels, the usual one first
    needs: tuple[str, ...] = ()  # pipelines that it needs; `all` leaves it out without them


def shown(value: Any) -> str:
    """The value as text."""
    return str(value)
