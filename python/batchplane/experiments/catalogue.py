# SPDX-License-Identifier: BSD-3-Clause
"""catalogue.py - all experiments by name."""

from __future__ import annotations

from collections.abc import Sequence

from ..problems import BadInput, Problem, suggestion
from . import fig2, fig8a, fig9a, fig9b, stranding, table2
from .experiment import Experiment

ALL = "all"
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (fig2, table2, fig8a, fig9a, fig9b, stranding)
}
# The same under the name of its figure.
_ALIASES = {"fig7": "table2"}
# Figures that another command draws.
_ELSEWHERE = {
    "fig1": "batchplane profile --plot fig1.png",
    "fig3": "batchplane profile --plot fig3.png",
}


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, each once. Raises BadInput with every wrong name."""
    problems = [_unknown(name) for name in names if name not in (ALL, *EXPERIMENTS, *_ALIASES)]
    if problems:
        raise BadInput(problems)
    if ALL in names:
        return list(EXPERIMENTS.values())
    return [EXPERIMENTS[name] for name in dict.fromkeys(_ALIASES.get(n, n) for n in names)]


def _unknown(name: str) -> Problem:
    if name in _ELSEWHERE:
        message = f"'{name}' is measured, and by another command"
        return Problem(message, "command line", "NAME", _ELSEWHERE[name])
    fix = suggestion(name, (ALL, *EXPERIMENTS, *_ALIASES))
    return Problem(f"there is no experiment '{name}'", "command line", "NAME", fix)
