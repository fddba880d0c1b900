# SPDX-License-Identifier: BSD-3-Clause
"""test_simulate.py - simulations from Python and from the command line, with the real extension."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import batchplane
from batchplane.base.problems import BadInput
from batchplane.cli.app import main
from batchplane.daemon.process import find_program
from batchplane.native.loader import extension_path
from batchplane.show.rates import compute_rates
from batchplane.sim.simulation import Simulation

pytestmark = pytest.mark.skipif(
    extension_path() is None,
    reason="NOT RUN: the extension is not built: tools/build.sh run native",
)

PIPELINE = """\
name: two
params: {rate_pps: 1000000, trigger: 0, slo: 50us}
engine: {idle: hold, stranding_limit: 100ms}
ports: {link: {kind: ring, size_pkts: 64}}
generators:
  - {name: load, port: link, rate_pps: "${rate_pps}", flows: [{name: f_0}, {name: f_1}]}
modules:
  in: {kind: port_in, port: link}
  l2: {kind: l2_table, entries: []}
  nf_0: {kind: cost, cost_per_batch_ns: 400, cost_per_pkt_ns: 40, trigger: "${trigger}"}
  nf_1: {kind: cost, cost_per_batch_ns: 400, cost_per_pkt_ns: 40, trigger: "${trigger}"}
  out_0: {kind: sink}
  out_1: {kind: sink}
connect:
  - l2:0 -> nf_0 -> out_0
  - in -> l2:1 -> nf_1 -> out_1
flows:
  - {name: f_0, path: [in, l2, nf_0, out_0], delay_slo: "${slo}"}
  - {name: f_1, path: [in, l2, nf_1, out_1]}
"""
NOTHING = {"cost_per_batch_ns": 0.0, "cost_per_pkt_ns": 0.0}
WORK = {"cost_per_batch_ns": 400.0, "cost_per_pkt_ns": 40.0}
COSTS = dict.fromkeys(("in", "l2", "out_0", "out_1"), NOTHING) | {"nf_0": WORK, "nf_1": WORK}
COSTS_FILE = {
    "version": 2,
    "label": "given",
    "modules": [
        {"name": kind, "kind": kind, **NOTHING} for kind in ("port_in", "l2_table", "sink")
    ],
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The pipeline as a file, on a machine without a daemon."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    path = tmp_path / "two.yaml"
    path.write_text(PIPELINE)
    return str(path)


@pytest.fixture
def costs(tmp_path: Path) -> str:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(COSTS_FILE))
    return str(path)


def simulation(file: str, **more: Any) -> Simulation:
    return Simulation(file, costs=COSTS, **more)


# --- from Python ----------------------------------------------------------------------------------


def test_counts_and_frames(file: str) -> None:
    result = simulation(file).run("50ms")
    assert result.label == "simulated"
    assert result.simulated_ns == 50_000_000
    assert result.rate_pps == pytest.approx(1e6, rel=1e-3)
    flows, modules = result.flows, result.modules
    assert list(flows.index) == ["f_0", "f_1", "other"]
    assert flows.loc["f_0", "pkts"] == pytest.approx(25_000, abs=2)
    assert modules.loc["nf_0", "pkts"] + modules.loc["nf_1", "pkts"] == modules.loc["l2", "pkts"]
    assert len(result.periods) == 5
    assert list(result.module_periods["time_ns"].unique()) == [i * 10_000_000 for i in range(1, 6)]
    assert set(result.flow_periods["flow"]) >= {"f_0", "f_1"}
    assert result.report["balance"]["is_exact"]


def test_params_settings_and_controllers_change_triggers(file: str) -> None:
    def triggers(result: Any) -> set[int]:
        frame = result.modules
        return {int(frame.loc[name, "trigger_pkts"]) for name in ("nf_0", "nf_1")}

    assert triggers(simulation(file, trigger=4).run("5ms")) == {4}
    assert triggers(simulation(file, trigger=4).run("20ms", controller="null")) == {0}
    assert triggers(simulation(file).run("20ms", controller="fixed(8)")) == {8}
    assert triggers(simulation(file, sets=["nf_*.trigger=5"]).run("5ms")) == {5}
    sim = simulation(file)
    sim.set("nf_0.trigger=3", "nf_1.trigger=3")
    assert triggers(sim.run("5ms")) == {3}


def test_full_batches_under_a_trigger(file: str) -> None:
    result = simulation(file, trigger=8).run("50ms")
    assert result.modules.loc["nf_0", "batch_mean_pkts"] == pytest.approx(8.0, rel=0.01)
    # 500 kpps each: seven more packets after the first take 14 us, then come 720 ns of work.
    assert result.flows.loc["f_0", "delay_max_ns"] == pytest.approx(14_720, rel=0.1)


def test_the_same_twice_and_another_with_another_seed(file: str) -> None:
    def run(seed: int) -> str:
        machine = batchplane.Machine(noise_sigma=0.1)
        result = simulation(file, machine=machine, seed=seed).run("20ms", controller="fixed(4)")
        data = result.as_json()
        del data["speed_pps"]
        return json.dumps(data)

    assert run(1) == run(1)
    assert run(1) != run(2).replace('"seed": 2', '"seed": 1')


def test_runs_go_on_where_the_last_one_ended(file: str) -> None:
    sim = simulation(file)
    first, second = sim.run("20ms"), sim.run("30ms")
    assert (sim.now_ns, second.simulated_ns) == (50_000_000, 30_000_000)
    total = sim.show("runtime")["balance"]["in_pkts"]
    counted = sum(int(r.modules.loc["in", "pkts"]) for r in (first, second))
    assert counted == total


class Alternating:
    """Gives the given answers, period by period."""

    def __init__(self, *answers: Any):
        self.answers = list(answers)
        self.periods: list[Any] = []

    def step(self, period: Any) -> Any:
        self.periods.append(period)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_controller_in_python(file: str) -> None:
    controller = Alternating({"nf_0": 4}, None, {"nf_0": {"trigger_pkts": 6, "age_limit_ns": 9000}})
    result = simulation(file).run("40ms", controller=controller)
    assert len(controller.periods) == 4
    frame = result.module_periods
    seen = frame[frame["module"] == "nf_0"]["trigger_pkts"].tolist()
    assert seen == [0, 4, 4, 6]
    assert result.modules.loc["nf_0", "age_limit_ns"] == 9000
    assert result.faults == []


def test_a_controller_that_fails_leaves_the_last_decision_in_force(file: str) -> None:
    controller = Alternating({"nf_0": 4}, RuntimeError("lost"), {"nf_9": 1}, {"nf_0": 99})
    sim = simulation(file)
    result = sim.run("50ms", controller=controller)
    assert result.modules.loc["nf_0", "trigger_pkts"] == 4
    assert [fault.period for fault in result.faults] == [1, 2, 3]
    assert "RuntimeError: lost" in result.faults[0].line()
    assert "raise answer" in result.faults[0].trace
    assert sim.run("10ms").rate_pps == pytest.approx(1e6, rel=0.01)


def test_step_by_step(file: str) -> None:
    sim = simulation(file)
    times = []
    for period in sim.steps("10ms", duration="35ms"):
        times.append(int(period["now_ns"]))
        sim.apply({"nf_0": len(times)})
    assert times == [10_000_000, 20_000_000, 30_000_000, 35_000_000]
    buffers = {row["module"]: row for row in sim.show("buffers")["buffers"]}
    assert buffers["nf_0"]["trigger_pkts"] == 4
    with pytest.raises(BadInput, match="the trigger of 'nf_0' is 99"):
        sim.apply({"nf_0": 99})


def test_where_the_time_of_a_packet_went(file: str) -> None:
    result = simulation(file, trigger=4).run("20ms", record_packets=1000, record_firings=100)
    packets, firings, hops = result.packets, result.firings, result.hops
    assert packets is not None and firings is not None and hops is not None
    assert len(packets) == 1000 and 0 < len(firings) <= 100
    assert set(firings["cause"]) <= {"full", "change"}
    gone = packets[packets["exit_ns"] > 0]
    parts = gone[["ring_ns", "fill_ns", "service_ns", "turnaround_ns"]].sum(axis=1)
    assert (parts == gone["exit_ns"] - gone["entry_ns"]).all()
    assert gone["fill_ns"].max() >= 6000  # the first of four waits for three more, 2 us apart
    assert set(hops["module"].unique()) <= set(result.modules.index)


TWO_GENERATORS = """\
name: pair
ports: {left: {kind: ring}, right: {kind: ring}}
generators:
  - {name: slow, port: left, rate_pps: 100000, flows: [{name: a}, {name: b}]}
  - {name: fast, port: right, rate_pps: 300000, flows: [{name: a}]}
modules:
  in_left: {kind: port_in, port: left}
  in_right: {kind: port_in, port: right}
  out_left: {kind: sink}
  out_right: {kind: sink}
connect:
  - in_left -> out_left
  - in_right -> out_right
flows:
  - {name: left, path: [in_left, out_left]}
  - {name: right, path: [in_right, out_right]}
"""


def test_flows_of_the_same_name_are_told_apart_by_their_generator(tmp_path: Path) -> None:
    pair = tmp_path / "pair.yaml"
    pair.write_text(TWO_GENERATORS)
    packets = Simulation(pair, costs="prior").run("1ms", record_packets=1000).packets
    assert packets is not None
    counted = packets.groupby(["flow", "traffic_flow"], observed=True).size().to_dict()
    assert set(counted) == {("left", "slow.a"), ("left", "slow.b"), ("right", "fast.a")}
    assert 290 <= counted["right", "fast.a"] <= 310
    pair.write_text(TWO_GENERATORS.replace("[{name: a}]", "[{name: c}]"))
    packets = Simulation(pair, costs="prior").run("1ms", record_packets=1000).packets
    assert packets is not None and set(packets["traffic_flow"]) == {"a", "b", "c"}


CUT = """\
name: cut
workers: [{name: w0}, {name: w1}]
ports: {link: {kind: ring}}
generators: [{name: load, port: link, rate_pps: 1000000}]
modules:
  in: {kind: port_in, port: link, worker: w0}
  q: {kind: queue, worker: w1}
  out: {kind: sink}
connect: [in -> q -> out]
flows: [{name: all, path: [in, q, out]}]
"""


def test_packets_from_a_queue_come_in_once(tmp_path: Path) -> None:
    file = tmp_path / "cut.yaml"
    file.write_text(CUT)
    result = Simulation(file, costs="prior").run("10ms", period="2ms")
    periods = result.periods
    assert periods["in_pps"].tolist()[1:] == pytest.approx([1e6] * 4, rel=0.01)
    assert periods["out_pps"].tolist()[1:] == pytest.approx([1e6] * 4, rel=0.01)
    assert compute_rates(result.first, result.last).in_pps == pytest.approx(1e6, rel=0.01)


def test_a_scenario_step_by_step(file: str, tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        """\
duration: 60ms
events:
  - {at: 20ms, set: load.rate=2M}
  - {at: 40ms, stop: load/f_1}
  - {at: 50ms, set: f_0.slo=20us}
"""
    )
    result = simulation(file, scenario=scenario).run()
    rates = result.periods.groupby("time_ns")["in_pps"].mean()
    assert rates[20_000_000] == pytest.approx(1e6, rel=0.02)
    assert rates[40_000_000] == pytest.approx(2e6, rel=0.02)
    assert rates[60_000_000] == pytest.approx(1e6, rel=0.02)
    flows = result.flow_periods
    late = flows[(flows["time_ns"] > 42_000_000) & (flows["flow"] == "f_1")]
    assert late["pkts"].sum() == 0
    assert flows[flows["flow"] == "f_0"]["slo_ns"].iloc[-1] == 20_000
    assert len(result.events) == 3


def test_stalls_and_drifting_costs_have_an_effect(file: str, tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "events:\n  - {at: 15ms, stall: w0, for: 300us}\n  - {at: 25ms, cost: 'nf_*', times: 2}\n"
    )
    result = simulation(file, scenario=scenario).run("40ms")
    worst = result.flow_periods.groupby("time_ns")["delay_max_ns"].max()
    assert worst[10_000_000] < 20_000
    assert worst[20_000_000] > 300_000
    busy = result.periods.set_index("time_ns")["busy_ratio"]
    assert busy[40_000_000] > busy[10_000_000]


def test_gaps_of_the_generators_have_an_effect(file: str) -> None:
    machine = batchplane.Machine(
        generator_stall_rate_per_s=500, generator_stall_lengths_ns=(200_000,)
    )
    with_holes = simulation(file, machine=machine).run("40ms")
    without = simulation(file).run("40ms")
    assert with_holes.flow_periods["delay_max_ns"].max() > 150_000
    assert without.flow_periods["delay_max_ns"].max() < 20_000
    assert with_holes.flow_periods["pkts"].sum() == pytest.approx(
        without.flow_periods["pkts"].sum(), rel=0.02
    )


# --- mistakes -------------------------------------------------------------------------------------


def test_mistakes_are_told_before_anything_runs(file: str, tmp_path: Path) -> None:
    def lines(**more: Any) -> list[str]:
        with pytest.raises(BadInput) as refused:
            Simulation(file, **{"costs": COSTS, **more})
        return refused.value.lines()

    without = {name: cost for name, cost in COSTS.items() if name != "nf_1"}
    assert lines(costs=without) == [
        f"{file}:11: modules.nf_1: 'nf_1' has no cost (batchplane profile --pipeline {file} "
        "--out costs.json)"
    ]
    assert (
        "which is not a time" in lines(costs={**COSTS, "l2": {**NOTHING, "cost_per_pkt_ns": -1}})[0]
    )
    assert lines(sets=["nf_2.trigger=3"]) == [
        "command line: nf_2.trigger=3: there is no module 'nf_2' (did you mean 'nf_0'?)"
    ]
    assert "unknown parameter 'rats'" in lines(rats=3)[0]
    traffic = tmp_path / "t.yaml"
    traffic.write_text("generators:\n  - {name: load, flows: [{name: f_0}, {name: f_8}]}\n")
    assert any("f_8" in line for line in lines(traffic=traffic))


def test_unknown_controllers_are_told_with_the_known(file: str) -> None:
    sim = simulation(file)
    with pytest.raises(BadInput, match=r"no controller 'maximum'.*null, max, .*fixed\(k\)"):
        sim.run("10ms", controller="maximum")
    with pytest.raises(BadInput, match="larger than the batch size 32"):
        sim.run("10ms", controller="fixed(33)")
    with pytest.raises(BadInput, match="'soon' is not a duration"):
        sim.run("soon")


# --- from the command line ------------------------------------------------------------------------


def call(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: str, code: int = 0
) -> tuple[str, str]:
    monkeypatch.setattr(sys, "argv", ["batchplane", "simulate", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capfd.readouterr()
    assert (ended.value.code or 0) == code, out + err
    return out, err


def test_the_report_says_simulated(
    file: str, costs: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out, _ = call(monkeypatch, capfd, file, "trigger=4", "--costs", costs, "-d", "20ms")
    lines = out.splitlines()
    assert lines[1].startswith("two, simulated: 20.0 ms, 1.00 Mpps in, 1.00 Mpps out")
    assert "(all packets accounted for)" in lines[2]
    assert any(line.startswith("nf_0") and " 4.0 " in line for line in lines)
    assert "measured" not in out.replace(", given", "")


def test_a_capture_from_end_to_end(
    file: str,
    costs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from scapy.layers.inet import IP, UDP  # type: ignore[import-untyped]
    from scapy.layers.l2 import ARP, Ether  # type: ignore[import-untyped]
    from scapy.utils import wrpcap  # type: ignore[import-untyped]

    def frame(i: int) -> Any:
        # Three of four go to the first gate; the table does not know the fourth.
        to = Ether(src="02:00:00:00:00:01", dst=f"02:00:00:00:00:0{i % 4}")
        made = to / (ARP() if i % 4 == 3 else IP(dst=f"10.0.0.{i % 4}") / UDP(sport=7, dport=9))
        made.time = 1_000_000 + i * 2e-6
        return made

    path = tmp_path / "x.pcap"
    wrpcap(str(path), [frame(i) for i in range(1000)])
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(find_program({})))
    entries = "entries: [" + ", ".join(f"{{mac: '02:00:00:00:00:0{i}', gate: 0}}" for i in range(3))
    Path(file).write_text(PIPELINE.replace("entries: [", entries))
    words = (file, "--costs", costs, "--traffic", str(path))
    out, _ = call(monkeypatch, capfd, *words)
    lines = out.splitlines()
    # As long as the capture: a packet every 2 us.
    assert lines[1].startswith("two, simulated: 2.01 ms, 498 kpps in, 374 kpps out")
    assert lines[2].startswith("1000 packets = 750 sent + 250 dropped + 0 held")
    assert "250 dropped by l2" in out
    data = json.loads(call(monkeypatch, capfd, *words, "-d", "1ms", "--json")[0])
    sent = {flow["name"]: flow["pkts"] for flow in data["snapshot"]["flows"]}
    assert sent["f_0"] == 375 and sent.get("f_1", 0) == 0


def test_json_for_programs(
    file: str, costs: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out, _ = call(monkeypatch, capfd, file, "--costs", costs, "-d", "0.02", "--json")
    data = json.loads(out)
    assert (data["label"], data["controller"], data["seed"]) == ("simulated", "none", 1)
    assert data["report"]["balance"]["is_exact"] and data["in_pps"] > 0
    assert data["snapshot"]["flows"][0]["name"] == "f_0"


def test_controllers_are_compared_over_processes(
    file: str, costs: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = (file, "--costs", costs, "-d", "20ms", "--compare", "max,fixed(8)", "--seeds", "2")
    parallel, _ = call(monkeypatch, capfd, *words, "--jobs", "2", "--json")
    alone, _ = call(monkeypatch, capfd, *words, "--jobs", "1", "--json")
    rows = json.loads(parallel)["comparison"]
    assert [(row["controller"], row["runs"]) for row in rows] == [
        ("none", 2),
        ("max", 2),
        ("fixed(8)", 2),
    ]
    assert rows[1]["batch_mean_pkts"] > rows[2]["batch_mean_pkts"] > rows[0]["batch_mean_pkts"]
    assert json.loads(alone)["comparison"] == rows
    text, _ = call(monkeypatch, capfd, *words)
    assert any(line.startswith("fixed(8)") for line in text.splitlines())


def test_figures_and_traces_are_written(
    file: str,
    costs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    import pandas as pd

    figures = tmp_path / "figures"
    words = (file, "trigger=4", "--costs", costs, "-d", "20ms")
    call(monkeypatch, capfd, *words, "--plot", str(figures))
    names = sorted(path.name for path in figures.iterdir())
    assert names == ["none_batches.png", "none_delays.png", "none_time.png", "none_triggers.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures.iterdir())
    csv, parquet = tmp_path / "t.csv", tmp_path / "t.parquet"
    call(monkeypatch, capfd, *words, "--trace", str(csv), "--trace-packets", "500")
    call(monkeypatch, capfd, *words, "--trace", str(parquet), "--trace-packets", "500")
    one, other = pd.read_csv(csv), pd.read_parquet(parquet)
    assert len(one) == len(other) == 500
    assert one["entry_ns"].tolist() == other["entry_ns"].tolist()
    assert set(one["flow"]) == {"f_0", "f_1"}


def test_a_controller_from_a_file_that_fails_ends_with_1(
    file: str,
    costs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "class C:\n    def step(self, period):\n        return {'nf_0': 1 // 0}\n"
        "def make_controller(model):\n    return C()\n"
    )
    words = (file, "--costs", costs, "-d", "20ms", "--controller", str(mine))
    out, err = call(monkeypatch, capfd, *words, code=1)
    assert "two, simulated: " in out
    assert "the controller failed in period 0 (t=10.0 ms): ZeroDivisionError" in err
    assert "mine.py" in err and "return {'nf_0': 1 // 0}" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--trace", "x.txt"), "error: command line: --trace: 'x.txt' is neither .csv nor .parquet"),
        (("--trace", "/no/where/x.csv"), "error: command line: --trace: there is no folder '/no/where'"),
        (("--trace", "x.csv", "--seeds", "2"), "error: command line: --trace: a trace holds one run, but several are requested (without --compare or --seeds)"),
        (("--controller", ""), "error: command line: --controller: no controller is given"),
        (("--scenario", "no.yaml"), "error: no.yaml: there is no such file"),
        (("--machine", "no.json"), "error: no.json: there is no such file"),
        (("--duration", "long"), "error: --duration: 'long' is not a duration (with a unit: 10ms, 1s)"),
    ],
)  # fmt: skip
def test_wrong_words(
    file: str,
    costs: str,
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    _, err = call(monkeypatch, capfd, file, "--costs", costs, *words, code=2)
    assert err.splitlines()[-1] == message
