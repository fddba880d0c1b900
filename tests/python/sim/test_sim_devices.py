# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_devices.py - modules on devices in simulations: laws, output, rejected input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon_and_extension
from command_line import run_command

from batchplane.base.problems import BadInput
from batchplane.base.version import __version__
from batchplane.costs.devices import keep_device_profile
from batchplane.costs.keys import cpu_name, params_key
from batchplane.show.rates import compute_rates
from batchplane.sim.prepare import prepare
from batchplane.sim.simulation import Simulation

pytestmark = needs_daemon_and_extension

CARD = {"kind": "simulated", "params": {"laws": {"digest": {"batch_ns": 5000.0, "pkt_ns": 10.0}}}}
THREAD: dict[str, Any] = {"kind": "cores", "params": {}}
OPENCL: dict[str, Any] = {"kind": "opencl", "params": {}}
COSTS = {
    "in": {"cost_per_batch_ns": 0.0, "cost_per_pkt_ns": 0.0},
    "hash": {"cost_per_batch_ns": 100.0, "cost_per_pkt_ns": 200.0},
    "out": {"cost_per_batch_ns": 0.0, "cost_per_pkt_ns": 0.0},
}


@pytest.fixture(autouse=True)
def _nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def pipeline(*on: str, device: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "name": "hashed",
        "ports": {"link": {"kind": "ring", "params": {"size_pkts": 1024}}},
        "devices": {"card": CARD, "thread": THREAD, "bare": {"kind": "simulated", "params": {}}},
        "generators": [
            {
                "name": "load", "port": "link",
                "params": {"rate_pps": 1e6, "flows": [{"name": "f", "size_bytes": 100}]},
            }
        ],
        "modules": {
            "in": {"kind": "port_in", "params": {"port": "link"}},
            "hash": {"kind": "digest", "params": {}, "device": {"on": list(on), **(device or {})}},
            "out": {"kind": "sink", "params": {}},
        },
        "edges": [
            {"from": "in", "gate": "0", "to": "hash"}, {"from": "hash", "gate": "0", "to": "out"}
        ],
        "flows": [{"name": "f", "path": ["in", "hash", "out"], "delay_slo_ns": 1_000_000}],
        **more,
    }  # fmt: skip


def law_of(device: str, **more: Any) -> dict[str, float]:
    inputs = prepare(pipeline(device, **more), costs=COSTS)
    laws: dict[str, float] = inputs.spec["simulation"]["stages"]["hash"]["laws"][device]
    return laws


def profile(kind: str) -> dict[str, Any]:
    params = params_key("digest", {})
    law = {"batch_ns": 900.0, "pkt_ns": 70.0, "byte_ns": 0.5}
    return {
        "version": 2, "cpu": cpu_name(), "daemon": __version__, "date": "today",
        "devices": [{"name": "it", "kind": kind}],
        "laws": [{"kind": "digest", "params_key": params, "on": "it", "feed": law, **law}],
    }  # fmt: skip


def test_a_law_is_the_pipelines_or_measured_or_that_of_the_worker_and_the_way() -> None:
    assert law_of("card") == {"batch_ns": 5000.0, "pkt_ns": 10.0, "byte_ns": 0.0}
    assert law_of("thread") == {"batch_ns": 700.0, "pkt_ns": 210.0, "byte_ns": 0.0}
    keep_device_profile(profile("cores"))
    measured = {"batch_ns": 900.0, "pkt_ns": 70.0, "byte_ns": 0.5}
    assert law_of("thread") == measured
    keep_device_profile(profile("opencl"))
    assert law_of("ocl", devices={"ocl": OPENCL}) == measured


@pytest.mark.parametrize(("device", "kind"), [("bare", "simulated"), ("ocl", "opencl")])
def test_unknown_laws_are_refused_in_one_line(device: str, kind: str) -> None:
    known = {device: {"kind": kind, "params": {}}}
    with pytest.raises(BadInput) as error:
        prepare(pipeline(device, devices=known), costs=COSTS)
    (line,) = error.value.lines()
    assert f"nobody knows what batches of 'hash' take on '{device}'" in line
    assert "laws: {digest: " in line and "batchplane profile --devices" in line
    # A device that gets no batches needs no law.
    Simulation(pipeline("inline", device, devices=known), costs=COSTS).run("1ms")


def test_devices_that_are_not_there_are_refused() -> None:
    with pytest.raises(BadInput, match="did you mean 'card'"):
        Simulation(pipeline("cart"), costs=COSTS)


def test_delays_are_those_of_the_schedule() -> None:
    """A packet per microsecond, batches of 10: 5.1 us and 10 packets of 10 ns, one batch at a
    time."""
    device = {"batch_pkts": 10, "idle": "hold", "age_limit_ns": 1_000_000}
    sim = Simulation(pipeline("card", device=device), costs=COSTS)
    result = sim.run("10ms", "none", is_drained=True)
    flow = result.flows.loc["f"]
    assert flow["delay_max_ns"] == pytest.approx(9000 + 5100, abs=250)
    assert flow["delay_mean_ns"] == pytest.approx(4500 + 5100, abs=250)
    (row,) = sim.show("tables")
    assert row["module"] == "hash" and row["stage"]["on"] == "card"
    assert row["stage"]["mean_job_pkts"] == pytest.approx(10, abs=0.02)
    card = row["stage"]["devices"][0]
    assert card["mean_run_ns"] == pytest.approx(5100, abs=1)
    assert card["busy_share"] == pytest.approx(0.51, abs=0.01)
    balance = result.report["balance"]
    assert balance["is_exact"] and balance["held_pkts"] == 0
    assert balance["in_pkts"] == balance["sent_pkts"] > 9000


def test_what_is_in_a_stage_is_held() -> None:
    slow = {"card": {"kind": "simulated", "params": {"laws": {"digest": {"batch_ns": 1e8}}}}}
    sim = Simulation(pipeline("card", devices=slow), costs=COSTS)
    result = sim.run("2ms")
    balance = result.report["balance"]
    assert balance["is_exact"] and balance["sent_pkts"] == 0
    assert balance["held_pkts"] == balance["in_pkts"] > 1000
    assert result.last["tables"][0]["stage"]["held_pkts"] == balance["held_pkts"]


def test_inline_takes_the_workers_time() -> None:
    busy = {}
    for on in ("inline", "card"):
        result = Simulation(pipeline(on), costs=COSTS).run("5ms")
        (worker,) = compute_rates(result.first, result.last).workers
        busy[on] = worker["busy_ratio"]
    assert busy["inline"] > busy["card"] + 0.2


def test_a_simulation_is_the_same_each_time() -> None:
    first, second = (Simulation(pipeline("card", "inline"), costs=COSTS, seed=3) for _ in range(2))
    assert first.run("5ms").last == second.run("5ms").last


@pytest.mark.parametrize("controller", ["null", "optimal", "fixed(8)"])
def test_controllers_run_beside_stages(controller: str) -> None:
    result = Simulation(pipeline("card"), costs=COSTS).run("50ms", controller)
    assert not result.faults
    assert result.report["balance"]["is_exact"]


def test_the_command_shows_what_devices_did(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--costs", "prior", "--duration", "20ms")
    assert run_command(monkeypatch, "simulate", "devices", "placement=power", *words) == 0
    told = capsys.readouterr()
    assert re.search(r"^dpi +gpu +100% +256 +150 us ", told.out, re.MULTILINE), told.out
    assert re.search(r"^gpu +simulated +up +\d+% +\d+ +\d+ ", told.out, re.MULTILINE), told.out
    assert re.search(r"^cpu +cores +up +\d+% +\d+ +\d+ ", told.out, re.MULTILINE), told.out
    assert "placement" not in told.err
    assert "on their worker" not in told.err


def placed(inline_share: float, **more: Any) -> Simulation:
    """Inline or on the card, as placement decides; the card takes 5 us a batch."""
    placement = {"policy": "latency", "inline_share": inline_share}
    on = pipeline("inline", "card", placement=placement, device={"max_batch_pkts": 1024}, **more)
    return Simulation(on, costs=COSTS)


def _scenario(folder: Path, event: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(f"events:\n  - {event}\n")
    return path


def stage_of(sim: Simulation) -> Any:
    return sim.show("tables")[0]["stage"]


@pytest.mark.parametrize(("inline_share", "on"), [(0.9, "inline"), (0.0001, "card")])
def test_placement_decides_as_in_the_daemon(inline_share: float, on: str) -> None:
    sim = placed(inline_share)
    assert sim.show("placement")["is_on"] and "plan" not in sim.show("placement")
    result = sim.run("500ms", is_drained=True)
    shown = sim.show("placement")
    assert set(shown["plan"]["hash"]) == {on}
    assert shown["steps"] >= 3 and shown["apps"]["hash"]["demand_pps"] == pytest.approx(
        1.1e6, rel=0.02
    )
    assert stage_of(sim)["on"] == on
    assert result.report["balance"]["is_exact"]
    assert result.flows.loc["f"]["delay_p99_ns"] < 1e6


def test_what_no_device_has_time_for_is_refused() -> None:
    slow = {"card": {"kind": "simulated", "params": {"laws": {"digest": {"pkt_ns": 4000.0}}}}}
    sim = placed(0.0001, devices=slow)
    result = sim.run("1s", is_drained=True)
    drops = {row["reason"]: row["pkts"] for row in sim.show("drops") if row["pkts"]}
    assert stage_of(sim)["refused_share"] == pytest.approx(0.8, abs=0.1)
    assert drops["refused_by_placement"] > 500_000
    balance = result.report["balance"]
    assert balance["is_exact"] and balance["held_pkts"] == 0


def test_devices_and_policies_change_while_traffic_flows(tmp_path: Path) -> None:
    sim = Simulation(pipeline("card", "thread", device={"max_batch_pkts": 64}), costs=COSTS)
    sim.run("5ms")
    assert stage_of(sim)["on"] == "card"
    scenario = Simulation(
        pipeline("card", "thread"), costs=COSTS,
        scenario=_scenario(tmp_path, "{at: 2ms, table: hash, verb: device, args: {on: thread, batch_pkts: 7}}"),
    )  # fmt: skip
    scenario.run("5ms")
    assert stage_of(scenario)["on"] == "thread" and stage_of(scenario)["batch_pkts"] == 7
    assert stage_of(scenario)["devices"][1]["done_pkts"] > 2000 and not scenario.warnings
    bare = Simulation(
        pipeline("card", "bare"), costs=COSTS,
        scenario=_scenario(tmp_path, "{at: 2ms, table: hash, verb: device, args: {on: bare}}"),
    )  # fmt: skip
    bare.run("5ms")
    assert "nobody says what batches take on 'bare'" in bare.warnings[0]
    assert stage_of(bare)["on"] == "card"
    wrong = Simulation(
        pipeline("card"), costs=COSTS,
        scenario=_scenario(tmp_path, "{at: 2ms, table: hash, verb: device, args: {on: cart}}"),
    )  # fmt: skip
    wrong.run("5ms")
    assert "did you mean 'card'" in wrong.warnings[0]
    sim = placed(0.9)
    sim.run("300ms")
    sim.set("placement.policy=power")
    sim.run("50ms")
    shown = sim.show("placement")
    assert shown["choice"]["policy"] == "power"
    assert shown["reason"] == "policy", "at once, not at the end of the period"


def test_a_module_may_run_on_seven_places() -> None:
    cards = {f"card{i}": CARD for i in range(6)}
    sim = Simulation(pipeline(*cards, "inline", devices=cards), costs=COSTS)
    result = sim.run("5ms", is_drained=True)
    places = stage_of(sim)["devices"]
    assert [place["share"] for place in places] == [1.0, *[0.0] * 6]
    assert [place["batch_pkts"] for place in places] == [256] * 7
    assert [bool(place["done_pkts"]) for place in places] == [True, *[False] * 6]
    assert result.report["balance"]["is_exact"]


def test_a_place_that_placement_may_choose_needs_a_law() -> None:
    on = pipeline("inline", "bare", placement={"policy": "power"})
    with pytest.raises(BadInput, match="take on 'bare'"):
        Simulation(on, costs=COSTS)


def test_a_plan_says_that_it_knows_no_devices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(monkeypatch, "plan", "devices", "--costs", "prior") == 0
    told = capsys.readouterr().err
    assert "this plan knows no devices: dpi, digest, classify run on their worker" in told
