# SPDX-License-Identifier: BSD-3-Clause
"""test_profile.py - the profiler on real pipelines: format of the costs file, plausible figures,
bad input.

No bound here is tight: a busy machine may slow everything down tenfold.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import Commands

from batchplane.costs.costs import EXACT, load_costs, resolve
from batchplane.costs.file import LOOP_KEYS
from batchplane.demo.netns import missing_for_hosts
from batchplane.lang.load import load_pipeline
from batchplane.profile.measure import ProfileOptions, profile_kinds
from batchplane.profile.setups import measured_in, setups

# One batch of 32 through the slowest module here, on a machine ten times slower than usual.
MAX_NS = 1_000_000  # more is a mistake of a unit, not a slow machine


@pytest.fixture(scope="module")
def costs_file(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The costs of l2l3, measured quickly, with a plot; once for all tests that read them."""
    folder = tmp_path_factory.mktemp("costs")
    out, plot = folder / "costs.json", folder / "costs.png"
    text = Commands(folder).good(
        "profile", "--pipeline", "l2l3", "--quick", "--out", str(out), "--plot", str(plot)
    )
    assert "lookup_0" in text
    assert "ttl_0_0 and 15 more" in text
    assert text.count("sure: within") + text.count("NOT SURE: within") == 1
    assert plot.read_bytes().startswith(b"\x89PNG")
    return out


@pytest.fixture
def l2l3(costs_file: Path) -> dict[str, Any]:
    """The content of the file."""
    document: dict[str, Any] = json.loads(costs_file.read_text())
    return document


def test_every_module_has_a_plausible_cost(l2l3: dict[str, Any]) -> None:
    assert (l2l3["version"], l2l3["label"], l2l3["batch_pkts"]) == (2, "measured", 32)
    kinds = [module["kind"] for module in l2l3["modules"]]
    assert sorted(kinds) == sorted(set(kinds)), "alike modules share one measurement"
    for module in l2l3["modules"]:
        assert module["cost_per_batch_ns"] >= 0
        assert module["cost_per_pkt_ns"] >= 0
        assert len(module["table_ns"]) == 32
        low, high = module["cost_per_pkt_95_ns"]
        assert low <= module["cost_per_pkt_ns"] <= high
        assert 0 < module["batchiness"] <= 1
        errors = module["small_error_ratio"], module["left_out_error_ratio"]
        assert min(errors) >= 0
        assert max(errors) <= 0.1 or module["reason"]
        of_32 = module["cost_per_batch_ns"] + 32 * module["cost_per_pkt_ns"]
        assert 1 < of_32 < MAX_NS, module["name"]
    assert all(isinstance(doubt, str) for doubt in l2l3["doubts"])
    assert l2l3["judgement"]["whole_error_ratio"] > 0
    assert set(l2l3["loop"]) == set(LOOP_KEYS)
    assert all(value >= 0 for value in l2l3["loop"].values())


def test_the_whole_is_measured_on_its_own_core_and_from_another(l2l3: dict[str, Any]) -> None:
    check = l2l3["check"]
    for stretch in ("", "behind_"):
        assert 0.3 < check[f"{stretch}batch_factor"] < 3.1
        assert 0.3 < check[f"{stretch}pkt_factor"] < 3.1
    near = [point for point in check["points"] if not point["from_other_core"]]
    polls = [(point["trigger_pkts"], point["pkts_per_loop"]) for point in near]
    assert polls == [(0, 32), (0, 4), (32, 32), (32, 4)]
    for point in check["points"]:
        assert 1 < point["measured_ns_per_pkt"] < MAX_NS
        assert 1 < point["law_ns_per_pkt"] < MAX_NS
        assert 1 <= point["pkts_per_loop"] <= 32
    # Points at which the machine gave generator or worker no core are left out.
    if len(os.sched_getaffinity(0)) > 1:
        assert len(near) < len(check["points"]) <= 12
        assert l2l3["loop"]["generator_look_ns"] > 0


def test_the_file_serves_its_pipeline(l2l3: dict[str, Any], costs_file: Path) -> None:
    costs = load_costs(costs_file)
    pipeline = load_pipeline("l2l3").pipeline
    found = resolve(pipeline, costs)
    assert set(found.modules) == set(pipeline["modules"])
    assert set(found.sources.values()) == {EXACT}
    tables = {module["name"]: tuple(module["table_ns"]) for module in l2l3["modules"]}
    assert {entry.name: entry.law.table_ns for entry in costs.entries} == tables
    assert found.warnings == ()


def test_only_what_was_named_is_measured(batchplane: Commands) -> None:
    document = batchplane.json("profile", "ttl", "--pipeline", "l2l3", "--quick")
    assert [module["kind"] for module in document["modules"]] == ["ttl"]


def test_kinds_without_a_pipeline(batchplane: Commands) -> None:
    document = batchplane.json("profile", "split", "napt", "--quick")
    assert {module["kind"] for module in document["modules"]} == {"split", "napt"}
    assert all("note" not in module for module in document["modules"]), "traffic reaches them"


def test_traffic_reaches_every_kind_in_its_setup() -> None:
    document = profile_kinds(options=ProfileOptions(ms_per_module=1.0, passes=1))
    measured = {kind for setup in setups() for kind in measured_in(setup)}
    assert {module["kind"] for module in document["modules"]} == measured
    assert [module for module in document["modules"] if "note" in module] == []


def test_devices_are_left_alone(batchplane: Commands) -> None:
    document = batchplane.json("profile", "in_lan", "ttl", "--pipeline", "router", "--quick")
    notes = {module["name"]: module.get("note", "") for module in document["modules"]}
    assert "af_packet" in notes["in_lan"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tll", "--pipeline", "l2l3"), "there is no module 'tll' (did you mean 'ttl"),
        (("tll",), "there is no test setup for 'tll' (did you mean 'ttl'?)"),
        (("--pipeline", "l2l4"), "there is no pipeline 'l2l4'"),
        (("--plot", "x.doc"), "unknown figure format"),
        (("--out", "/nowhere/x.json"), "the folder does not exist"),
        (("--param", "a=1"), "--param is for a pipeline"),
    ],
)
def test_bad_input_is_told_before_anything_is_measured(
    batchplane: Commands, words: tuple[str, ...], expected: str
) -> None:
    done = batchplane.run("profile", *words)
    assert done.code == 2
    assert len(done.lines) == 1
    assert expected in done.err


def test_ports_of_the_kernel_are_measured_on_a_wire(program: Path, tmp_path: Path) -> None:
    """Without root and without this machine's interfaces; sending is a system call."""
    if (reason := missing_for_hosts()) is not None:
        pytest.skip(f"NOT RUN: {reason}")
    out = tmp_path / "costs.json"
    Commands(tmp_path).good("profile", "--pipeline", "router", "--quick", "--out", str(out))
    modules = json.loads(out.read_text())["modules"]
    on_wire = {module["kind"]: module for module in modules if "port_kind" in module}
    in_memory = {module["kind"]: module for module in modules if "port_kind" not in module}
    assert sorted(on_wire) == ["port_in", "port_out"]
    for module in on_wire.values():
        assert module["port_kind"] == "af_packet"
        assert len(module["table_ns"]) == 32 and max(module["table_ns"]) < MAX_NS
    sent, kept = (of["port_out"]["cost_per_pkt_ns"] for of in (on_wire, in_memory))
    assert sent > 3 * kept
    found = resolve(load_pipeline("router").pipeline, load_costs(out))
    assert found.ports == "af_packet measured"
