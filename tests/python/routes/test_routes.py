# SPDX-License-Identifier: BSD-3-Clause
"""test_routes.py - the route of each traffic flow: from the built program, or from declared
flows."""

import json
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from batchplane.base.problems import BadInput, RunFailed
from batchplane.daemon.process import find_program
from batchplane.lang.canonical import Document
from batchplane.lang.load import load_pipeline
from batchplane.routes import resolve as routes
from batchplane.routes.declared import traffic_flow_names
from batchplane.routes.resolve import Probe, probe_routes, resolve_routes, trace_routes
from batchplane.traces.flows import parse_rules
from batchplane.traces.pcap_file import write_pcap
from batchplane.traces.trace import read_trace

PIPELINES = Path(__file__).resolve().parents[3] / "pipelines"
WITH_TRAFFIC = (
    "devices",
    "edge_router",
    "gateway",
    "heavy_branches",
    "ids",
    "ipsec_gateway",
    "l2l3",
    "l2l3_inline",
    "load_balancer",
    "mgw",
    "robot_control",
    "shared_link",
    "simple",
    "subscribers",
    "tree",
    "two_tasks",
    "vrf",
)


@pytest.fixture(scope="module")
def program() -> Path:
    """The built program: these tests need its real modules."""
    return find_program()


@pytest.fixture
def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RunFailed("batchplaned is not built")

    monkeypatch.setattr(routes, "find_program", fail)


def probed(name: str, program: Path, **overrides: str) -> Probe:
    return probe_routes(load_pipeline(str(PIPELINES / f"{name}.yaml"), overrides), program)


@pytest.mark.parametrize("name", sorted(path.stem for path in PIPELINES.glob("*.yaml")))
def test_every_pipeline_resolves(name: str, program: Path) -> None:
    overrides = {
        "edge_router": {"fib_size": "1000", "flows": "64"},
        "vpn_gateway": {"test_keys": "true"},
    }.get(name, {})
    document = load_pipeline(str(PIPELINES / f"{name}.yaml"), overrides)
    found = probe_routes(document, program)
    assert found.warnings == []
    names = {source: [route["name"] for route in all_] for source, all_ in found.routes.items()}
    assert names == traffic_flow_names(document)
    assert bool(names) == (name in WITH_TRAFFIC)
    declared = {flow["name"] for flow in document.pipeline["flows"]}
    for all_routes in found.routes.values():
        for route in all_routes:
            assert route["ways"]
            for way in route["ways"]:
                assert way["path"][-1] == way["end"]
                assert way.get("flow") in declared, route


@pytest.mark.parametrize(
    ("name", "overrides", "traffic", "declared"),
    [
        ("gateway", {"branches": "2", "nexthops": "4"}, "branch_{0}_{1}", "flow_{0}_{1}"),
        ("gateway", {"nat_stateful": "1", "nexthops": "4"}, "branch_{0}_{1}", "flow_{0}_{1}"),
        ("l2l3", {"branches": "3", "nexthops": "5"}, "branch_{0}_{1}", "flow_{0}_{1}"),
        ("vrf", {"vrfs": "2", "nexthops": "4"}, "vrf_{0}_{1}", "flow_{0}_{1}"),
        ("vrf", {"vrfs": "2", "nexthops": "4", "acl_last": "1"}, "vrf_{0}_{1}", "flow_{0}_{1}"),
    ],
)
def test_each_flow_of_the_papers_pipelines_ends_as_the_declared_one(
    name: str, overrides: dict[str, str], traffic: str, declared: str, program: Path
) -> None:
    found = probed(name, program, **overrides)
    for route in found.routes["load"]:
        indices = route["name"].split("_")[1:]
        assert route["name"] == traffic.format(*indices)
        (way,) = route["ways"]
        assert way["flow"] == declared.format(*indices)
        lookup, next_hop = f"lookup_{indices[0]}", int(indices[1])
        assert route["gates"][lookup] == next_hop


def test_declared_flows_and_the_real_modules_agree(program: Path) -> None:
    document = load_pipeline(str(PIPELINES / "gateway.yaml"), {"nexthops": "4"})
    named = {"load": {f"branch_0_{n}": f"flow_0_{n}" for n in range(4)}}
    real = resolve_routes(document, program)
    declared = resolve_routes(document, program, named)
    for a, b in zip(real["load"], declared["load"], strict=True):
        assert a["name"] == b["name"]
        # Declared paths only contain choices; gates of splitters with one exit are none.
        assert b["gates"].items() <= a["gates"].items()
        assert b["gates"] == {"lookup_0": int(b["name"][-1])}


def test_random_splits_are_free_and_have_weights(program: Path) -> None:
    found = probed("tree", program, leaves="4", weight_0="3")
    assert found.free == {"split": [3, 1, 1, 1]}
    (route,) = found.routes["load"]
    assert route["gates"] == {}
    assert [way["flow"] for way in route["ways"]] == [f"flow_{i}" for i in range(4)]


def test_drops_tell_their_reason_and_go_by_their_gate(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "drops.yaml"
    file.write_text(
        """\
modules:
  in: {kind: source, flows: [{name: good}, {name: old, ttl: 1}, {name: lost, dst_ip: 99.0.0.1}]}
  lookup: {kind: ipv4_lookup, routes: [{prefix: 10.0.0.0/8, gate: 0}]}
  ttl: {kind: ttl}
  expired: {kind: queue}
  told: {kind: sink}
  out: {kind: sink}
connect:
  - in -> lookup -> ttl -> out
  - ttl:drop -> expired -> told
flows:
  - {name: dead, path: [in, lookup, "ttl:drop", expired, told]}
"""
    )
    good, old, lost = probe_routes(load_pipeline(str(file)), program).routes["in"]
    assert good["gates"] == {"lookup": 0}
    assert old["gates"] == {"lookup": 0, "ttl": "drop"}
    assert old["ways"][0]["flow"] == "dead"
    assert lost["gates"] == {"lookup": "drop"}
    assert lost["ways"][0]["drop_reason"] == "no_route"
    assert "flow" not in lost["ways"][0]


def test_it_needs_no_root_no_cores_and_no_socket(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    pipeline = load_pipeline(str(PIPELINES / "router.yaml")).pipeline
    file.write_text(json.dumps(pipeline))
    done = subprocess.run(
        [program, "--routes", file],
        capture_output=True,
        text=True,
        env={"BATCHPLANE_RUN_DIR": str(tmp_path / "never made")},
    )
    assert done.returncode == 0, done.stderr
    # Its interfaces need not exist.
    assert json.loads(done.stdout)["routes"] == {}
    assert not (tmp_path / "never made").exists()


@pytest.mark.parametrize("name", ["edge_router", "mobile_gateway", "router6"])
def test_it_needs_hardly_any_memory(name: str, program: Path, tmp_path: Path) -> None:
    # DPDK's environment alone would not fit: packets and tables take only what they need.
    limit_bytes = 160 << 20
    overrides = {"fib_size": "1000", "flows": "64"} if name == "edge_router" else {}
    document = load_pipeline(str(PIPELINES / f"{name}.yaml"), overrides)
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(document.pipeline))
    done = subprocess.run(
        [program, "--routes", path],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    routes = json.loads(done.stdout)["routes"]
    assert routes == probe_routes(document, program).routes


def test_the_flows_of_a_trace_take_their_routes(program: Path, tmp_path: Path) -> None:
    document = load_pipeline(str(PIPELINES / "l2l3.yaml"), {"nexthops": "4"})

    def frame(next_hop: int, port: int) -> bytes:
        ip = bytes.fromhex("4500002e00000000401100000a000001") + bytes((20, 0, next_hop, 9))
        ports = port.to_bytes(2, "big") + b"\x00\x50"
        start = bytes.fromhex("02770b0000010200000000010800")
        return (start + ip + ports).ljust(60, b"\0")

    packets = [(i * 1000, frame(n, 7)) for i, n in enumerate((2, 0, 2, 3))]
    write_pcap(tmp_path / "t.pcap", packets, snap_bytes=42)
    found = trace_routes(document, "load", read_trace(tmp_path / "t.pcap"), program)
    assert [route["gates"]["lookup_0"] for route in found] == [2, 0, 3]
    assert found[0]["name"] == "10.0.0.1:7 > 20.0.2.9:80 udp"
    rules = parse_rules([{"name": "low", "dst": "20.0.0.0/23"}, {"name": "high"}])
    found = trace_routes(document, "load", read_trace(tmp_path / "t.pcap", rules), program)
    assert [(route["name"], route["gates"]["lookup_0"]) for route in found] == [
        ("low", 0),
        ("high", 2),
    ]
    rules = parse_rules([{"name": "none", "dst": "1.0.0.0/8"}, {"name": "all"}])
    with pytest.raises(BadInput, match="no packet of the trace is of traffic flow 'none'"):
        trace_routes(document, "load", read_trace(tmp_path / "t.pcap", rules), program)
    with pytest.raises(
        BadInput, match=r"nothing called 'laod' brings packets in \(did you mean 'load'"
    ):
        trace_routes(document, "laod", read_trace(tmp_path / "t.pcap"), program)


def test_answers_are_remembered_by_content(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(document: Document, *_: object) -> dict[str, Any]:
        asked.append(document.pipeline["name"])
        return {"routes": {}}

    monkeypatch.setattr(routes, "_ask", ask)
    monkeypatch.setattr(routes, "_cache", {})
    for leaves in ("2", "3", "2"):
        probed("tree", program, leaves=leaves)
    assert len(asked) == 2


def test_mistakes_in_the_pipeline_are_told_with_their_place(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "modules:\n  in: {kind: source}\n  out: {kind: sinc}\nconnect:\n  - in -> out\n"
    )
    with pytest.raises(BadInput) as error:
        probe_routes(load_pipeline(str(file)), program)
    assert error.value.lines()[0].startswith(f"{file}:3: modules.out.kind: unknown kind 'sinc'")


def test_a_program_that_fails_is_told(tmp_path: Path) -> None:
    document = load_pipeline(str(PIPELINES / "simple.yaml"))
    program = tmp_path / "batchplaned"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(RunFailed, match="ended with code 3: broken"):
        probe_routes(document, program)
    with pytest.raises(RunFailed, match="is not there"):
        probe_routes(document, tmp_path / "missing")


# --- without the program -------------------------------------------------------------------------

DECLARED = """\
modules:
  in: {kind: port_in, port: p}
  pick: {kind: exact_match}
  a: {kind: ttl}
  b: {kind: ttl}
  spread: {kind: split, gates: 2}
  x: {kind: sink}
  y: {kind: sink}
ports: {p: {kind: ring}}
generators:
  - {name: load, port: p, flows: [{name: up}, {name: down, count: 2}]}
connect:
  - in -> pick
  - pick:0 -> a -> x
  - pick:4 -> b -> spread
  - b:drop -> x
  - spread:0 -> x
  - spread:1 -> y
flows:
  - {name: up, path: [in, "pick:0", a, x]}
  - {name: down_0, path: [in, pick, b, spread, y]}
  - {name: down_1, path: [in, "pick:4", "b:drop", x]}
"""


def declared(tmp_path: Path, text: str = DECLARED) -> Document:
    file = tmp_path / "declared.yaml"
    file.write_text(text)
    return load_pipeline(str(file))


def test_flows_of_the_same_name_give_the_gates(tmp_path: Path, no_program: None) -> None:
    assert resolve_routes(declared(tmp_path)) == {
        "load": [
            {"name": "up", "gates": {"pick": 0}},
            {"name": "down_0", "gates": {"pick": 4}},
            {"name": "down_1", "gates": {"pick": 4, "b": "drop"}},
        ]
    }


def test_named_flows_take_precedence_over_those_of_the_same_name(
    tmp_path: Path, no_program: None
) -> None:
    found = resolve_routes(declared(tmp_path), assignments={"load": {"up": "down_1"}})
    assert found["load"][0] == {"name": "up", "gates": {"pick": 4, "b": "drop"}}


def test_blind_splits_alone_need_no_declared_flow(no_program: None) -> None:
    document = load_pipeline(str(PIPELINES / "robot_control.yaml"))
    assert resolve_routes(document) == {"load": [{"name": "flow 0", "gates": {}}]}


def test_unknown_routes_say_what_to_do(tmp_path: Path, no_program: None) -> None:
    text = DECLARED.replace("{name: up},", "{name: aside},")
    with pytest.raises(BadInput) as error:
        resolve_routes(declared(tmp_path, text))
    assert str(error.value).endswith(
        "declared.yaml:11: the route of flow 'aside' of generator 'load' is unknown (build the "
        "daemon (make build), or name the declared flow that it follows: `flow: NAME` in "
        "the traffic file)"
    )
    with pytest.raises(BadInput) as error:
        resolve_routes(
            declared(tmp_path), assignments={"laod": {}, "load": {"upp": "up", "up": "down_9"}}
        )
    assert error.value.lines() == [
        "there is no generator 'laod' (did you mean 'load'?)",
        "load.upp: generator 'load' has no flow 'upp' (did you mean 'up'?)",
        "load.up.flow: there is no declared flow 'down_9' (did you mean 'down_0'?)",
    ]


def test_paths_that_do_not_exist_are_reported(tmp_path: Path, no_program: None) -> None:
    several = DECLARED.replace('[in, "pick:0", a, x]', "[in, x]")
    with pytest.raises(BadInput, match="more than one way leads from 'in' to 'x'"):
        resolve_routes(declared(tmp_path, several))
    none = DECLARED.replace('[in, "pick:0", a, x]', "[in, a, y]")
    with pytest.raises(BadInput, match=r"declared.yaml:\d+: .*no way leads from 'a' to 'y'"):
        resolve_routes(declared(tmp_path, none))
