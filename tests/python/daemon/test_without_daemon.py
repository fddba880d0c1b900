# SPDX-License-Identifier: BSD-3-Clause
"""test_without_daemon.py - simulations without the daemon program, as with a wheel alone.

The replacement has to give the same routes as the program, for every pipeline of the project.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon_and_extension, needs_extension

from batchplane.base.problems import BadInput
from batchplane.daemon.process import find_program
from batchplane.lang.canonical import Document
from batchplane.lang.load import load_pipeline
from batchplane.routes import known as known_routes
from batchplane.routes.resolve import probe_routes, resolve_routes, trace_routes
from batchplane.sim.simulation import Simulation
from batchplane.traces.pcap_file import write_pcap
from batchplane.traces.trace import read_trace

ROOT = Path(__file__).resolve().parents[3]
PIPELINES = sorted(path.stem for path in (ROOT / "pipelines").glob("*.yaml"))
# Otherwise it needs a key file, which tests do not have.
NEEDED = {"vpn_gateway": {"test_keys": "true"}}
USUAL: list[tuple[str, dict[str, str]]] = [
    *((name, NEEDED.get(name, {})) for name in PIPELINES),
    ("gateway", {"branches": "2", "nexthops": "5", "acl_style": "random", "acl_size": "1000"}),
    ("gateway", {"nat_stateful": "1", "nexthops": "64", "acl_style": "script"}),
    ("gateway", {"nexthops": "1"}),
    ("l2l3", {"branches": "3", "nexthops": "4"}),
    ("l2l3_inline", {"branches": "2", "nexthops": "64"}),
    ("vrf", {"vrfs": "3", "nexthops": "5"}),
    ("vrf", {"vrfs": "2", "nexthops": "4", "acl_last": "1"}),
    ("mgw", {"users": "2"}),
    ("mgw", {"bearers": "3", "users": "4", "sessions": "11"}),
    ("mgw", {"real": "1", "sessions": "9"}),
    ("mgw", {"inner_check": "1", "users": "2"}),
    ("mgw", {"vxlan": "1", "users": "3"}),
    ("tree", {"leaves": "4"}),
    ("edge_router", {"vrfs": "4", "rate_pps": "1000", "trigger": "8"}),
    ("load_balancer", {"servers": "8", "saturate": "true"}),
]


@pytest.fixture
def no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))


def that_choose(document: Document, routes: dict[str, Any]) -> dict[str, Any]:
    """The gates of modules that have several, and those that drop: what determines a packet's
    path."""
    gates: dict[str, set[Any]] = {}
    for edge in document.pipeline["edges"]:
        if edge["gate"] != "drop":
            gates.setdefault(edge["from"], set()).add(edge["gate"])
    return {
        source: [
            {
                module: gate
                for module, gate in route["gates"].items()
                if gate == "drop" or gates.get(module) != {0}
            }
            for route in found
        ]
        for source, found in routes.items()
    }


@needs_daemon_and_extension
@pytest.mark.parametrize(("name", "params"), USUAL)
def test_the_routes_are_those_that_the_program_finds(
    name: str, params: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = load_pipeline(name, params)
    real = probe_routes(document, find_program())
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    found = resolve_routes(load_pipeline(name, params))
    assert {source: [route["name"] for route in all_] for source, all_ in found.items()} == {
        source: [route["name"] for route in all_] for source, all_ in real.routes.items()
    }
    assert that_choose(document, found) == that_choose(document, real.routes)


@needs_daemon_and_extension
@pytest.mark.parametrize("name", ["gateway", "l2l3_inline", "mgw", "load_balancer"])
def test_the_simulation_is_the_same_to_the_packet(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run() -> dict[str, Any]:
        result = Simulation(name, costs="prior").run("2ms").as_json()
        del result["speed_pps"]
        return dict(result)

    with_program = run()
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    assert json.dumps(run()) == json.dumps(with_program)


@needs_extension
@pytest.mark.parametrize("name", PIPELINES)
def test_every_pipeline_is_simulated(name: str, no_daemon: None) -> None:
    if any(
        module["kind"] == "egress" for module in load_pipeline(name).pipeline["modules"].values()
    ):
        with pytest.raises(BadInput, match="what '.*' schedules is unknown"):
            Simulation(name, costs="prior")
        return
    simulation = Simulation(name, costs="prior")
    result = simulation.run("1ms", is_drained=True)
    if simulation.inputs.document.pipeline.get("generators"):
        assert result.report["balance"]["in_pkts"] > 50
    assert result.report["balance"]["is_exact"]


@needs_daemon_and_extension
def test_the_file_of_known_routes_matches_the_program() -> None:
    tool = ROOT / "tools" / "make_known_routes.py"
    spec = importlib.util.spec_from_file_location("make_known_routes", tool)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = json.loads(known_routes.FILE.read_text())
    assert module.entries() == kept, "write it anew: tools/make_known_routes.py"


def test_unknown_routes_are_reported_with_the_known_parameters(no_daemon: None) -> None:
    with pytest.raises(BadInput) as refused:
        resolve_routes(load_pipeline("load_balancer", {"servers": "5"}))
    (line,) = refused.value.lines()
    assert "the route of flow 'web_0' of generator 'load' is unknown" in line
    assert "`flow: NAME` in the traffic file; without it, routes are known with" in line
    assert "all as it has them" in line and "servers=8" in line


# --- flow: ------------------------------------------------------------------------------------------

TWO = """\
name: two
ports: {p: {kind: ring}}
generators: [{name: load, port: p, flows: [{name: x, count: 3}]}]
modules:
  in: {kind: port_in, port: p}
  pick: {kind: l2_table, entries: [{mac: '02:00:00:00:02:00', gate: 1}]}
  a: {kind: sink}
  b: {kind: sink}
connect: ['in -> pick', 'pick:0 -> a', 'pick:1 -> b']
flows:
  - {name: to_0, path: [in, pick, a]}
  - {name: to_1, path: [in, pick, b]}
"""
NOTHING = {"cost_per_batch_ns": 0.0, "cost_per_pkt_ns": 10.0}
COSTS = dict.fromkeys(("in", "pick", "a", "b"), NOTHING)


def simulated(tmp_path: Path, traffic: str, pipeline: str = TWO) -> dict[str, int]:
    (tmp_path / "two.yaml").write_text(pipeline)
    (tmp_path / "t.yaml").write_text(traffic)
    simulation = Simulation(tmp_path / "two.yaml", tmp_path / "t.yaml", COSTS)
    flows = simulation.run("3ms").flows
    return {name: int(flows.loc[name, "pkts"]) for name in ("to_0", "to_1")}


@needs_extension
def test_traffic_files_name_the_flows_that_are_followed(tmp_path: Path, no_daemon: None) -> None:
    text = "generators: [{name: load, rate_pps: 1000000, flows: [{name: y, flow: to_1}]}]\n"
    found = simulated(tmp_path, text)
    assert found["to_0"] == 0 and found["to_1"] > 2900
    text = text.replace("flow: to_1", "count: 6, flow: 'to_{i % 3 // 2}'")
    found = simulated(tmp_path, text)
    assert found["to_0"] == pytest.approx(2 * found["to_1"], abs=4)


@needs_daemon_and_extension
def test_traffic_files_take_precedence_over_the_program(tmp_path: Path) -> None:
    text = "generators: [{name: load, rate_pps: 1000000, flows: [{name: y FLOW}]}]\n"
    assert simulated(tmp_path, text.replace(" FLOW", ""))["to_1"] > 2900
    assert simulated(tmp_path, text.replace(" FLOW", ", flow: to_0"))["to_0"] > 2900
    # A pipeline's own `flow:` only counts without the program.
    named = TWO.replace("count: 3", "flow: to_0")
    assert (
        simulated(tmp_path, "generators: [{name: load, rate_pps: 1000000}]\n", named)["to_0"] == 0
    )


@needs_extension
@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ("to_2", "traffic flow 'y' follows 'to_2', which is not a declared flow (did you mean 'to_0'?)"),
        ("'to_{j}'", "flow: 'to_{j}': unknown name 'j'"),
    ],
)  # fmt: skip
def test_unknown_flows(flow: str, words: str, tmp_path: Path, no_daemon: None) -> None:
    text = f"generators:\n  - name: load\n    flows: [{{name: y, flow: {flow}}}]\n"
    with pytest.raises(BadInput) as refused:
        simulated(tmp_path, text)
    (line,) = refused.value.lines()
    assert line.startswith(f"{tmp_path / 't.yaml'}:3: ") and words in line


def test_captures_need_the_program_only_where_something_chooses(
    tmp_path: Path, no_daemon: None
) -> None:
    frame = bytes(12) + b"\x08\x00" + bytes(46)
    write_pcap(tmp_path / "t.pcap", [(1000, frame), (2000, frame)])
    trace = read_trace(tmp_path / "t.pcap")
    warned: list[str] = []
    (route,) = trace_routes(load_pipeline("simple"), "load", trace, warn=warned.append)
    assert route["gates"] == {}
    assert warned == ["the daemon is not built: drops of trace packets are not detected"]
    with pytest.raises(BadInput, match="the routes of the trace.s packets behind"):
        trace_routes(load_pipeline("gateway"), "load", trace)
