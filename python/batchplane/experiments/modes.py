# SPDX-License-Identifier: BSD-3-Clause
"""modes.py - decides which experiments of a command are measured and which are simulated.

By default each runs in its usual way. `all` leaves out experiments that cannot run as requested;
for an experiment given by name that is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.problems import BadInput, Problem, RunFailed
from ..daemon.process import find_program
from ..lang.load import has_pipeline
from .catalogue import ALL, PRESCRIBED_COSTS
from .common.experiment import MEASURED, SIMULATED, Experiment, Setup

GIVEN = "paper"  # costs that do not belong to any daemon here
Chosen = tuple[Experiment, Setup]


def choose_modes(
    experiments: Sequence[Experiment],
    names: Sequence[str],
    is_measured: bool | None,
    costs: Sequence[str],
    is_quick: bool,
) -> tuple[list[Chosen], list[str]]:
    """The experiments with their setups, for each of the costs, and a line for each that is left
    out. Measured runs take the first of the costs. Raises BadInput."""
    # As keys: what does not depend on the costs is there once.
    chosen: dict[Chosen, None] = {}
    left_out: dict[str, None] = {}
    for i, each in enumerate(costs):
        some, without = _for_costs(experiments, names, is_measured, each, is_quick)
        chosen |= dict.fromkeys(one for one in some if i == 0 or not one[1].is_measured)
        left_out |= dict.fromkeys(without)
    return list(chosen), list(left_out)


def _for_costs(
    experiments: Sequence[Experiment],
    names: Sequence[str],
    is_measured: bool | None,
    costs: str,
    is_quick: bool,
) -> tuple[list[Chosen], list[str]]:
    chosen: list[Chosen] = []
    left_out: list[str] = []
    problems: list[Problem] = []
    missing = _missing_daemon()
    is_given = costs == GIVEN
    for experiment in experiments:
        mode = experiment.runs[0] if is_measured is None else _word(is_measured)
        if mode not in experiment.runs:
            if ALL not in names:
                other = experiment.runs[0]
                message = f"{experiment.name} cannot be {mode}, only {other}"
                problems.append(Problem(message, "command line", f"--{mode}", f"--{other}"))
            continue
        lacking = [name for name in experiment.needs if not has_pipeline(name)]
        if lacking and ALL in names:
            left_out.append(f"{experiment.name} is left out: there is no pipeline '{lacking[0]}'")
            continue
        if mode == MEASURED and is_given:
            if ALL not in names or is_measured:
                problems.append(_given_problem(experiment.name))
            continue
        if mode == MEASURED and missing is not None:
            if ALL not in names or is_measured:
                raise missing
            left_out.append(f"{experiment.name} is left out: {missing}")
            continue
        is_prescribed = mode == SIMULATED and experiment.name in PRESCRIBED_COSTS
        setup = Setup("" if is_prescribed else costs, is_quick, mode == MEASURED)
        chosen.append((experiment, setup))
    if problems:
        raise BadInput(problems)
    return chosen, left_out


def _given_problem(name: str) -> Problem:
    message = f"{name} is measured, and published costs are not this machine's"
    return Problem(message, "command line", "--costs", "leave it out, or give a profile")


def _word(is_measured: bool) -> str:
    return MEASURED if is_measured else SIMULATED


def _missing_daemon() -> RunFailed | None:
    try:
        find_program()
    except RunFailed as error:
        return error
    return None
