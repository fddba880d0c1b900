# SPDX-License-Identifier: BSD-3-Clause
"""plans.py - runs the cases that experiments yield, stage by stage, and sends them the results.

Simulated experiments advance together: one stage of all of them is a single list of cases, so that
no process is idle at the end of one experiment. Measured ones run in turn, with the machine to
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from .case import Case
from .experiment import Experiment, Outcome, Results, Setup
from .store import Runner

OnDone = Callable[[int, Outcome], None]


def run_plan(experiment: Experiment, setup: Setup, runner: Runner) -> Outcome:
    """Runs one experiment to its end."""
    found: list[Outcome] = []
    _run_together([_Going(0, experiment.plan(setup))], setup.is_measured, runner, _taker(found))
    return found[0]


def run_plans(chosen: Sequence[tuple[Experiment, Setup]], runner: Runner, on_done: OnDone) -> None:
    """Runs all of them; calls on_done with each outcome's position as soon as it is ready."""
    simulated = [i for i, (_, setup) in enumerate(chosen) if not setup.is_measured]
    if simulated:
        runner.describe("simulated" if len(simulated) > 1 else chosen[simulated[0]][0].name)
        going = [_Going(i, chosen[i][0].plan(chosen[i][1])) for i in simulated]
        _run_together(going, False, runner, on_done)
    for i, (experiment, setup) in enumerate(chosen):
        if setup.is_measured:
            runner.describe(experiment.name)
            _run_together([_Going(i, experiment.plan(setup))], True, runner, on_done)


@dataclass
class _Going:
    """A running experiment."""

    place: int
    plan: Generator[list[Case], Results, Outcome]


def _run_together(going: list[_Going], is_measured: bool, runner: Runner, on_done: OnDone) -> None:
    wanted = [next(each.plan) for each in going]
    while going:
        results = runner.run_groups(wanted, is_measured)
        left: list[_Going] = []
        wanted = []
        for each, found in zip(going, results, strict=True):
            try:
                wanted.append(each.plan.send(found))
                left.append(each)
            except StopIteration as end:
                on_done(each.place, end.value)
        going = left


def _taker(found: list[Outcome]) -> OnDone:
    return lambda _, outcome: found.append(outcome)
