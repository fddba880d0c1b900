# SPDX-License-Identifier: BSD-3-Clause
"""test_optimal_ports.py - `optimal` on ports whose cost changes with every period, as those of the
kernel do: sending a packet takes 0.5 us in one and 2 us in the next; or in trains of other lengths,
as TCP sends them."""

from __future__ import annotations

import itertools
import random

import pytest
from built import needs_extension
from conftest import load

import batchplane
from batchplane.native.loader import NativeSimulation, make_simulation
from batchplane.sim.prepare import prepare
from batchplane.sim.simulation import Simulation

PERIOD_NS = 10_000_000
PERIODS, SETTLED = 400, 20
TRAIN_PERIODS = 150
TIMES = (0.3, 0.5, 1, 1.2)
TEXT = """\
name: two
ports: {{lan: {{kind: ring, size_pkts: 512}}, wan: {{kind: ring, size_pkts: 512}}}}
generators:
  - {{name: a, port: lan, rate_pps: {pps}, arrivals: poisson, flows: [{{name: x}}]}}
  - {{name: b, port: wan, rate_pps: 20000, arrivals: poisson, flows: [{{name: y}}]}}
modules:
  in_lan: {{kind: port_in, port: lan}}
  in_wan: {{kind: port_in, port: wan}}
  type: {{kind: ether_type, rules: [{{ether_type: ipv4, gate: 0}}, {{ether_type: arp, gate: 1}}]}}
  check: {{kind: ipv4_check}}
  ttl: {{kind: ttl}}
  out: {{kind: sink}}
connect: [in_lan -> type, in_wan -> type, "type:0 -> check", "type:1 -> ttl", check -> ttl, ttl -> out]
flows:
  - {{name: lan, path: [in_lan, type, check, ttl, out], delay_slo: 2ms}}
  - {{name: wan, path: [in_wan, type, check, ttl, out], delay_slo: 2ms}}
"""
COSTS = {
    "in_lan": (275.0, 59.0),
    "in_wan": (275.0, 59.0),
    "type": (130.0, 8.0),
    "check": (47.0, 8.0),
    "ttl": (62.0, 15.0),
    "out": (200.0, 1750.0),
}


def law(per_batch_ns: float, per_pkt_ns: float, times: float = 1) -> dict[str, float]:
    return {"cost_per_batch_ns": times * per_batch_ns, "cost_per_pkt_ns": times * per_pkt_ns}


def triggers_after(native: NativeSimulation, number: int) -> list[int]:
    """Runs one more period; the triggers in force in it."""
    native.run_until((number + 1) * PERIOD_NS)
    return [int(pkts) for pkts in native.step()[0]["modules"]["trigger_pkts"]]


def moves_per_s(seen: list[list[int]]) -> float:
    moves = sum(now != before for before, now in itertools.pairwise(seen))
    return moves * 1e9 / (PERIOD_NS * len(seen))


def triggers_over_time(pps: int, stalls_per_s: int, seed: int) -> list[list[int]]:
    """The triggers in force in each period, once settled."""
    machine = batchplane.Machine(
        stall_rate_per_s=stalls_per_s, stall_lengths_ns=(50_000, 100_000, 300_000, 3_000_000)
    )
    costs = {name: law(*cost) for name, cost in COSTS.items()}
    simulation = Simulation(load(TEXT.format(pps=pps)), machine=machine, seed=seed, costs=costs)
    native = simulation._native
    native.set_controller("optimal", {})
    rng = random.Random(seed)
    seen = []
    for number in range(PERIODS):
        native.edit({"costs": {"out": law(*COSTS["out"], rng.choice(TIMES))}})
        seen.append(triggers_after(native, number))
    return seen[SETTLED:]


@needs_extension
@pytest.mark.parametrize(
    ("pps", "stalls_per_s", "seed", "most_per_s"),
    [(400_000, 0, 1, 1), (350_000, 100, 2, 2), (420_000, 30, 3, 3)],
)
def test_triggers_do_not_follow_every_period(
    pps: int, stalls_per_s: int, seed: int, most_per_s: int
) -> None:
    """A core that is idle for a quarter of its time, and takes what is held then."""
    seen = triggers_over_time(pps, stalls_per_s, seed)
    assert moves_per_s(seen) <= most_per_s


def trains(pps: int, seed: int) -> dict[str, list[int]]:
    """Packets in trains of 1, 8, 32 or 64, one length a period."""
    rng = random.Random(seed)
    times_ns: list[int] = []
    now_ns = 0.0
    for number in range(TRAIN_PERIODS):
        pkts = rng.choice((1, 8, 32, 64))
        while now_ns < (number + 1) * PERIOD_NS:
            times_ns += pkts * [int(now_ns)]
            now_ns += pkts * 1e9 / pps * rng.uniform(0.9, 1.1)
    return {"time_ns": times_ns, "flow": [0] * len(times_ns), "size_bytes": [64] * len(times_ns)}


@needs_extension
@pytest.mark.parametrize(("pps", "seed"), [(400_000, 1), (450_000, 1), (450_000, 2)])
def test_triggers_do_not_follow_the_length_of_trains(pps: int, seed: int) -> None:
    """A train as long as a trigger fires by itself: no reason to bypass, and to hold again later."""
    costs = {name: law(*cost) for name, cost in (COSTS | {"out": (2200.0, 1300.0)}).items()}
    text = TEXT.format(pps=1000).replace("2ms", "20ms")
    spec = prepare(load(text), costs=costs).spec
    spec["simulation"]["traces"] = {"a": trains(pps, seed)}
    native = make_simulation(spec)
    native.set_controller("optimal", {})
    seen = [triggers_after(native, number) for number in range(TRAIN_PERIODS)]
    assert max(seen[-1]) > 0
    assert moves_per_s(seen[SETTLED:]) <= 2


@needs_extension
@pytest.mark.parametrize(
    ("stalls_per_s", "lengths_us", "slo"),
    [(2000, (100, 200, 400), "2ms"), (1000, (500,), "2ms"), (200, (1000, 2000, 4000), "20ms")],
)
def test_triggers_rest_on_a_core_that_loses_half_of_its_time(
    stalls_per_s: int, lengths_us: tuple[int, ...], slo: str
) -> None:
    machine = batchplane.Machine(
        stall_rate_per_s=stalls_per_s, stall_lengths_ns=tuple(1000 * us for us in lengths_us)
    )
    costs = {name: law(*cost) for name, cost in COSTS.items()}
    document = load(TEXT.format(pps=200_000).replace("2ms", slo))
    native = Simulation(document, machine=machine, seed=2, costs=costs)._native
    native.set_controller("optimal", {})
    seen = [triggers_after(native, number) for number in range(PERIODS)]
    assert moves_per_s(seen[SETTLED:]) <= 2


@needs_extension
def test_an_overload_is_still_seen() -> None:
    """Twice what the core can take: buffers hold, in all periods."""
    seen = triggers_over_time(1_000_000, 0, 1)
    assert all(max(triggers) > 0 for triggers in seen)
