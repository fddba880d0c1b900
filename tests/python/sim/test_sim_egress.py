# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_egress.py - the daemon's packet schedulers in virtual time."""

from __future__ import annotations

from typing import Any

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


def _behind_each_vlan(**module: Any) -> dict[str, Any]:
    """`subscribers` with a module between the VLANs and the link."""
    pipeline = load_pipeline("subscribers").pipeline
    pipeline["modules"]["first"] = {"kind": module.pop("kind"), "params": module}
    for edge in pipeline["edges"]:
        if edge["to"] == "link":
            edge["to"] = "first"
    pipeline["edges"].append({"from": "first", "gate": "0", "to": "link"})
    for flow in pipeline["flows"]:
        flow["path"].insert(2, "first")
    return pipeline


def _drops(sim: Simulation) -> dict[tuple[str, str], int]:
    return {(row["module"], row["reason"]): row["pkts"] for row in sim.show("drops")}


def test_a_calendar_releases_by_the_times_that_a_pace_sets() -> None:
    """Each flow has 16 Mbit/s, whatever it sends; gold and the flood send more."""
    pipeline = _behind_each_vlan(kind="pace", flow_by="vrf", rate_bps=16_000_000, horizon_us=20_000)
    link = pipeline["modules"]["link"]["params"]
    link |= {"discipline": "calendar", "rate_bps": 0, "limit_pkts": 1000}
    sim = Simulation(pipeline)
    frame = sim.run("200ms").flow_periods
    late = frame[frame["time_ns"] > 50_000_000]
    seconds = (late["time_ns"].max() - 50_000_000) / 1e9
    pkts = late.groupby("flow", observed=False)["pkts"].sum()
    mbps = {str(flow): float(n) * 1004 * 8 / 1e6 / seconds for flow, n in pkts.items()}
    assert mbps["gold"] == pytest.approx(16, rel=0.02)
    assert mbps["silver"] == pytest.approx(8, rel=0.02)
    assert mbps["flood"] == pytest.approx(16, rel=0.02)
    assert _drops(sim).keys() == {("first", "pace_horizon")}


def test_early_drop_takes_out_what_the_link_would_refuse() -> None:
    sim = Simulation(_behind_each_vlan(kind="early_drop", scheduler="link"))
    sim.run("200ms")
    drops = _drops(sim)
    # The flood sends 25,000 packets, of which the link carries 5,000 at most.
    assert drops["first", "egress_full"] > 19_000
    assert drops.get(("link", "egress_full"), 0) < 1_000


def test_a_route_to_nowhere_is_refused() -> None:
    inputs = Simulation("subscribers").inputs
    inputs.spec["simulation"]["routes"]["subscribers"][0]["gates"]["link"] = "gold"
    with pytest.raises(BadInput, match="'gold' is no flow of 'link'"):
        Simulation(inputs)
