# SPDX-License-Identifier: BSD-3-Clause
"""catalogue.py - all experiments by name."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.problems import BadInput, Problem, suggestion
from .batchy import (
    fairness,
    fig1,
    fig2,
    fig3,
    fig8a,
    fig8b,
    fig9a,
    fig9b,
    fig9c,
    fig10,
    fig11,
    table1,
    table2,
)
from .beyond import batch_size, rates, run_order, slo_curve, stranding
from .common.experiment import Experiment
from .egress import aqm as egress_aqm
from .egress import tree as egress_tree
from .multicore import multi_fig5, multi_fig6, multi_table1
from .pspat import algorithms as pspat_algorithms
from .pspat import budget as egress_budget
from .pspat import bus as pspat_bus
from .pspat import dispatch as pspat_io
from .pspat import latency as pspat_latency
from .pspat import overload as pspat_overload
from .pspat import shares as pspat_shares
from .pspat import throughput as pspat_throughput
from .pythia import devices as pythia_devices
from .pythia import energy as pythia_energy
from .pythia import events as pythia_events
from .pythia import fig5 as pythia_fig5
from .pythia import interference as pythia_interference
from .pythia import sizes as pythia_sizes

ALL = "all"
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *(
            module.EXPERIMENT
            for module in (
                fig1, fig2, fig3, table1, table2, fig8a, fig8b, fig9a, fig9b, fig9c, fig10, fig11,
                fairness, multi_table1, multi_fig5, multi_fig6,
                slo_curve, stranding, run_order, batch_size, rates,
                pspat_algorithms, pspat_latency, pspat_shares, pspat_throughput, pspat_io,
                pspat_overload, pspat_bus, egress_budget, egress_aqm, egress_tree,
                pythia_devices, pythia_interference,
            )
        ),
        pythia_fig5.EXPERIMENT, pythia_fig5.EXPERIMENT_CD, pythia_events.EXPERIMENT,
        pythia_events.EXPERIMENT_LOSS, pythia_sizes.EXPERIMENT, pythia_energy.EXPERIMENT,
    )
}  # fmt: skip
# Simulated with costs that they prescribe, or without any: `--costs` does not matter to them.
PRESCRIBED_COSTS = frozenset(
    name
    for name in EXPERIMENTS
    if name == "fig10" or name.startswith(("multi_", "pspat_", "egress_", "pythia_"))
)
# The same experiments under the names of their figures.
_ALIASES = {"fig7": "table2"}


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, each once. Raises BadInput with every wrong name."""
    problems = [_unknown(name) for name in names if name not in (ALL, *EXPERIMENTS, *_ALIASES)]
    if problems:
        raise BadInput(problems)
    if ALL in names:
        return list(EXPERIMENTS.values())
    return [EXPERIMENTS[name] for name in dict.fromkeys(_ALIASES.get(n, n) for n in names)]


def _unknown(name: str) -> Problem:
    fix = suggestion(name, (ALL, *EXPERIMENTS, *_ALIASES))
    return Problem(f"there is no experiment '{name}'", "command line", "NAME", fix)
