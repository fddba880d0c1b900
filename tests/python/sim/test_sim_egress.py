# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_egress.py - the daemon's packet schedulers in virtual time."""

from __future__ import annotations

import pytest

from batchplane import Simulation
from batchplane.base.problems import BadInput
from batchplane.daemon.process import find_program
from batchplane.lang.load import load_pipeline
from batchplane.routes.resolve import resolve_routes, resolve_schedulers


def _rates(name: str, **params: str) -> dict[str, float]:
    sim = Simulation(name, **params)
    frame = sim.run("200ms").flow_periods
    late = frame[frame["time_ns"] > 50_000_000]
    seconds = (late["time_ns"].max() - 50_000_000) / 1e9
    pkts = late.groupby("flow", observed=False)["pkts"].sum()
    return {str(flow): float(n) * 1004 * 8 / 1e6 / seconds for flow, n in pkts.items()}


def test_a_flood_takes_nothing_from_those_who_keep_their_share() -> None:
    fair = _rates("subscribers")
    # 60 and 8 Mbit/s are sent; the link carries 100.
    assert fair["gold"] == pytest.approx(60, rel=0.02)
    assert fair["silver"] == pytest.approx(8, rel=0.02)
    assert sum(fair.values()) == pytest.approx(100, rel=0.02)
    flooded = _rates("subscribers", discipline="fifo")
    assert flooded["gold"] < 50


def test_packets_belong_to_the_flows_that_the_real_module_gives_them() -> None:
    document = load_pipeline("subscribers")
    gates = [route["gates"] for route in resolve_routes(document, find_program())["subscribers"]]
    assert [gate["link"] for gate in gates] == [0, 1, 2]
    numbers = resolve_schedulers(document, find_program())["link"]
    assert [flow["weight"] for flow in numbers["flows"]] == [8, 1, 1]
    assert numbers["rate_bps"] == 100_000_000


def test_bounds_and_who_sends_more_than_a_share_are_told_by_the_period() -> None:
    sim = Simulation("shared_link", other_pps="10000")
    frame = sim.run("60ms", "optimal", "20ms").flow_periods
    first = frame[frame["flow"] == "tenant_0"]
    assert (first["egress_bound_ns"] > 50_000).all()
    assert not first["is_beyond_share"].any()
    assert (frame[frame["flow"] == "tenant_3"]["is_beyond_share"].tail(1) == 1).all()


def test_a_tree_keeps_its_ceilings() -> None:
    """The pipeline has names; the simulation gets numbers."""
    pipeline = load_pipeline("subscribers").pipeline
    link = pipeline["modules"]["link"]["params"]
    link |= {
        "discipline": "tree", "overhead_bytes": 0,
        "nodes": [{"node": "home", "ceil_bps": 20_000_000}],
        "flows": [{"flow": 0, "parent": "home"}, {"flow": 1, "parent": "home"}, {"flow": 2}],
    }  # fmt: skip
    frame = Simulation(pipeline).run("200ms").flow_periods
    late = frame[frame["time_ns"] > 50_000_000]
    seconds = (late["time_ns"].max() - 50_000_000) / 1e9
    pkts = late.groupby("flow", observed=False)["pkts"].sum()
    at_home = float(pkts["gold"] + pkts["silver"]) * 1000 * 8 / seconds
    assert at_home == pytest.approx(20e6, rel=0.02)


def test_a_route_to_nowhere_is_refused() -> None:
    inputs = Simulation("subscribers").inputs
    inputs.spec["simulation"]["routes"]["subscribers"][0]["gates"]["link"] = "gold"
    with pytest.raises(BadInput, match="'gold' is no flow of 'link'"):
        Simulation(inputs)
