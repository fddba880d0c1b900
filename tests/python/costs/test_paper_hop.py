# SPDX-License-Identifier: BSD-3-Clause
"""test_paper_hop.py - the hop of `--costs paper`: derived again from the original's rates, and what
the simulator makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from batchplane.base.problems import BadInput
from batchplane.costs.costs import PAPER, CostsFile, costs_from, load_costs, resolve
from batchplane.costs.law import CostLaw
from batchplane.experiments.batchy.table2 import stage_case
from batchplane.experiments.beyond.rates import ORIGINALS, config_of
from batchplane.experiments.common import case as case_module
from batchplane.experiments.common.case import inputs_of
from batchplane.experiments.common.experiment import Setup
from batchplane.experiments.common.measure import run_case
from batchplane.native.loader import extension_path
from batchplane.sim import prepare as prepare_module

needs_simulator = pytest.mark.skipif(extension_path() is None, reason="the simulator is not built")
# VRF(2,4) is no help: its script has four modules that ours lacks. RC(16) is little but its leaves'
# 4000 ns a batch.
DERIVED_FROM = ("L2L3(16)", "GW(16)")
CONTROLLERS = ("null", "max")
TRIED_NS = 10.0


@pytest.fixture(autouse=True)
def _prepared_anew() -> Iterator[None]:
    case_module._prepared.cache_clear()
    yield
    case_module._prepared.cache_clear()


def pkt_ns(label: str, controller: str) -> float:
    """Simulated time per packet at full load."""
    case = stage_case(config_of(label), Setup(PAPER, is_quick=True), controller, seed=1)
    case = replace(case, warmup_periods=5, periods=5)
    return 1e9 / float(run_case(inputs_of(case), case)["rate_pps"])


def original_pkt_ns(label: str, controller: str) -> tuple[float, float]:
    """The original's time per packet on its two CPUs."""
    original = next(each for each in ORIGINALS if each.label == label)
    place = CONTROLLERS.index(controller)
    return 1e3 / original.intel[place], 1e3 / original.amd[place]


@needs_simulator
def test_the_hop_is_what_the_rates_of_the_original_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Least squares of the relative errors: time is linear in both costs of a hop."""

    def with_hop(per_batch_ns: float, per_pkt_ns: float) -> None:
        def load(name: str) -> CostsFile:
            return replace(load_costs(name), hop=CostLaw(per_batch_ns, per_pkt_ns))

        monkeypatch.setattr(prepare_module, "load_costs", load)
        case_module._prepared.cache_clear()

    lines, lacking = [], []
    runs = [(label, controller) for label in DERIVED_FROM for controller in CONTROLLERS]
    simulated = {}
    for hop in ((0.0, 0.0), (TRIED_NS, 0.0), (0.0, TRIED_NS)):
        with_hop(*hop)
        simulated[hop] = [pkt_ns(*run) for run in runs]
    for run, without, batches, pkts in zip(runs, *simulated.values(), strict=True):
        for theirs in original_pkt_ns(*run):
            lines.append([(more - without) / TRIED_NS / theirs for more in (batches, pkts)])
            lacking.append((theirs - without) / theirs)
    fitted = np.linalg.lstsq(np.array(lines), np.array(lacking), rcond=None)[0]
    hop_of_file = load_costs(PAPER).hop
    assert hop_of_file is not None
    assert [round(ns) for ns in fitted] == [
        hop_of_file.cost_per_batch_ns,
        hop_of_file.cost_per_pkt_ns,
    ]
    # A packet by itself: more than most modules.
    assert 10 <= hop_of_file.at(1) <= 20


@needs_simulator
def test_l2l3_takes_as_long_unbuffered_as_the_original() -> None:
    """155 to 184 ns a packet; without the hop it was 98."""
    assert 155 <= pkt_ns("L2L3(16)", "null") <= 184


def test_a_hop_is_in_front_of_every_module_but_the_first_and_merge() -> None:
    entries = [
        {"kind": kind, "cost_per_batch_ns": 1, "cost_per_pkt_ns": 2} for kind in ("port_in", "sink")
    ]
    entries.append({"kind": "merge", "table_ns": [1, 3]})
    entries.append({"kind": "ttl", "table_ns": [4, 6], "table_pkts": [1, 32]})
    hop = {"cost_per_batch_ns": 13, "cost_per_pkt_ns": 5}
    file = costs_from({"version": 2, "modules": entries, "hop": hop})
    modules = {kind: {"kind": kind} for kind in ("port_in", "merge", "ttl", "sink")}
    laws = resolve({"modules": modules}, file).modules
    assert [laws[kind].at(1) for kind in modules] == [3, 1, 4 + 18, 3 + 18]
    assert laws["ttl"].at(32) == 6 + 13 + 32 * 5


@pytest.mark.parametrize(
    "hop", [5, {"cost_per_batch_ns": 1}, {"cost_per_batch_ns": -1, "cost_per_pkt_ns": 1}, {"x": 1}]
)
def test_mistakes_in_a_hop_are_named(hop: object) -> None:
    with pytest.raises(BadInput, match="hop"):
        costs_from({"version": 2, "modules": [], "hop": hop})
