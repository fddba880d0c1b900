# SPDX-License-Identifier: BSD-3-Clause
"""test_plan.py - `batchplane plan`: its output in text, JSON and a figure, and what it rejects."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from random_pipelines import random_pipeline

from batchplane.cli.app import main
from batchplane.lang.canonical import Document
from batchplane.native.loader import extension_path
from batchplane.plan.branches import branches_of
from batchplane.plan.knobs import Knobs, knob_inputs, train_of_flows
from batchplane.plan.planning import Planner, cores_for
from batchplane.sim.prepare import Inputs

pytestmark = pytest.mark.skipif(
    extension_path() is None,
    reason="NOT RUN: the extension is not built: tools/build.sh run native",
)

PIPELINE = """\
name: four
params: {rate_pps: 3000000, slo: 100us}
engine: {idle: hold}
ports: {link: {kind: ring, size_pkts: 64}}
generators:
  - {name: load, port: link, rate_pps: "${rate_pps}", flows: [{name: f, count: 4}]}
modules:
  in: {kind: port_in, port: link}
  l2: {kind: l2_table, entries: []}
repeat:
  - as: i
    count: 4
    modules:
      nf_${i}: {kind: cost, cost_per_batch_ns: 900, cost_per_pkt_ns: 20}
      out_${i}: {kind: sink}
    connect:
      - l2:${i} -> nf_${i} -> out_${i}
    flows:
      - {name: "f_${i}", path: [in, l2, "nf_${i}", "out_${i}"], delay_slo: "${slo}"}
connect:
  - in -> l2
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The pipeline as a file, on a machine without a daemon and without profiles."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "four.yaml"
    path.write_text(PIPELINE)
    return str(path)


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    """Exit code, standard output and errors of `batchplane plan ...`."""
    monkeypatch.setattr(sys, "argv", ["batchplane", "plan", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


def planned(monkeypatch: Any, capsys: Any, *words: str) -> dict[str, Any]:
    code, out, err = run(monkeypatch, capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)  # type: ignore[no-any-return]


def test_says_rate_triggers_and_what_would_change_it(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(monkeypatch, capsys, file)
    assert code == 0
    first = out.splitlines()[0]
    assert first.startswith("four, planned: one core carries ") and "Mpps" in first
    for words in (
        "no buffers", "full batches", "planned triggers", "f_* (4)", "nf_* (4)", "what if",
        "SLO 50.0 us", "one fewer branch behind l2: 3 for 4", "3.00 Mpps offered need",
        "An estimate",
    ):  # fmt: skip
        assert words in out, words


def test_json_holds_all_of_it(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(monkeypatch, capsys, file, "--slo", "22us", "--rate", "30M")
    assert plan["label"] == "planned" and plan["is_settled"]
    null, full = plan["baselines"]
    assert (null["controller"], full["controller"]) == ("null", "max")
    assert null["rate_pps"] < plan["rate_pps"] <= 1.01 * full["rate_pps"]
    assert {row["slo_ns"] for row in plan["flows"]} == {22_000}
    assert not any(row["late_share"] or row["is_broken"] for row in plan["flows"])
    triggers = [row["trigger_pkts"] for row in plan["modules"] if row["is_controlled"]]
    assert len(triggers) == 4 and all(8 < trigger <= 32 for trigger in triggers)
    # Full batches meet this SLO: another microsecond gains nothing, and a fifth less loses them.
    assert all(row["multiplier_pps_per_us"] == 0 for row in plan["flows"])
    factors = {row["slo_factor"]: row["rate_pps"] for row in plan["other_slos"]}
    assert factors[0.8] < plan["rate_pps"] == pytest.approx(factors[1.25], rel=0.01)
    (less,) = plan["one_branch_less"]
    assert less["splitter"] == "l2" and less["rate_pps"] > plan["rate_pps"]
    cores = plan["cores"]
    assert cores["is_estimate"]
    assert cores["cores"] * cores["load"] * plan["rate_pps"] == pytest.approx(30e6)


def test_a_microsecond_buys_what_the_multipliers_say(file: str) -> None:
    inputs, _ = knob_inputs(Knobs(branches=8, batchiness=0.05, work="2us"))
    planner = Planner(inputs)
    now, later = (planner.plan(dict.fromkeys(_flows(inputs), slo)) for slo in (150_000, 170_000))
    price = sum(row["multiplier_pps_per_us"] for row in now["flows"])
    gain = later["rate_pps"] - now["rate_pps"]
    assert gain == pytest.approx(20 * price, rel=0.5)


def _flows(inputs: Inputs) -> list[str]:
    return [flow["name"] for flow in inputs.document.pipeline["flows"]]


def test_knobs_stand_for_a_pipeline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rate(*words: str) -> tuple[float, float]:
        plan = planned(monkeypatch, capsys, "--branches", "16", "--slo", "200us", *words)
        return plan["rate_pps"], plan["baselines"][0]["rate_pps"]

    light, light_null = rate("--batchiness", "0.1")
    heavy, heavy_null = rate("--batchiness", "0.7")
    bursty, bursty_null = rate("--batchiness", "0.1", "--burst", "8")
    # Buffers gain more if more of the cost is per batch, and less if traffic is bursty.
    assert light / light_null > 2 > heavy / heavy_null
    assert bursty / bursty_null < 0.8 * light / light_null
    code, out, _ = run(monkeypatch, capsys, "--branches", "16", "--slo", "200us")
    assert code == 0 and "assumed (--work TIME)" in out.splitlines()[1]


@pytest.mark.parametrize("burst", [1.0, 1.1, 4.0])
def test_trains_have_the_mean_length_asked_for(burst: float) -> None:
    flows = train_of_flows(16, burst)
    changes = sum(a != b for a, b in itertools.pairwise(flows))
    assert len(flows) / (changes + 1) == pytest.approx(burst, rel=0.03)
    assert all(flows.count(flow) == pytest.approx(len(flows) / 16, rel=0.25) for flow in range(16))
    assert flows == train_of_flows(16, burst)


def test_a_picture(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.svg"
    code, _, err = run(monkeypatch, capsys, file, "--plot", str(path))
    assert code == 0 and str(path) in err.replace("\n", "")
    assert path.read_text().count("<path") > 20


def test_an_slo_that_cannot_be_met_is_reported_with_its_term_and_a_remedy(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(monkeypatch, capsys, file, "--slo", "12us")
    assert code == 2 and "cannot be met" in out
    assert "no SLO binds" not in out and "buy nothing" not in out
    assert re.search(r"f_\* \(\d\): an SLO of 12.0 us cannot be met at full load", err)
    assert "turnaround" in err and "or an SLO of" in err
    code, out, err = run(monkeypatch, capsys, file, "--slo", "f_2=500ns")
    assert code == 2
    assert "no SLO binds" not in out and "buy nothing" not in out
    assert "f_2: an SLO of 500 ns is below the inherent delay" in err and "its modules alone" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--slo", "g_1=80us"], "there is no flow 'g_1' (did you mean"),
        (["--slo", "80"], "'80' is not a duration"),
        (["--slo", "none"], "no flow has an SLO"),
        (["--costs", "missing.json"], "there is no such costs file"),
        (["--rate", "fast"], "'fast' is not a rate"),
        (["--plot", "plan.bmp"], "is not a figure"),
        (["--plot", "nowhere/plan.png"], "there is no folder"),
        (["--traffic", "missing.yaml"], "there is no such file"),
        (["--control", "percntile=1"], "did you mean 'percentile'?"),
        (["--branches", "4"], "give a pipeline or --branches"),
        (["--batchiness", "0.2"], "add --branches N"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    words: list[str],
    told: str,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run(monkeypatch, capsys, file, *words)
    assert code == 2 and not out
    assert told in err and len(err.strip().splitlines()) == 1


def test_costs_that_are_missing_are_named_with_the_command_that_makes_them(
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = {"cost_per_batch_ns": 0.0, "cost_per_pkt_ns": 0.0}
    entries = [{"name": kind, "kind": kind, **nothing} for kind in ("port_in", "sink")]
    costs = tmp_path / "costs.json"
    costs.write_text(json.dumps({"version": 2, "label": "given", "modules": entries}))
    code, _, err = run(monkeypatch, capsys, file, "--costs", str(costs))
    assert code == 2
    assert "there is no cost for module 'l2'" in err and "batchplane profile --pipeline" in err


def test_traffic_that_is_missing_is_assumed_or_given(
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    silent = tmp_path / "silent.yaml"
    lines = PIPELINE.splitlines(keepends=True)
    silent.write_text("".join(lines[:4] + lines[6:]))
    code, _, err = run(monkeypatch, capsys, str(silent))
    assert code == 0 and "no generator" in err and "--traffic FILE" in err
    traffic = tmp_path / "traffic.yaml"
    traffic.write_text(
        "generators: [{name: load, port: link, rate_pps: 1M, flows: [{name: f, count: 4}]}]\n"
        .replace("1M", "1000000")
    )  # fmt: skip
    code, out, err = run(monkeypatch, capsys, str(silent), "--traffic", str(traffic))
    assert code == 0, err
    assert "1.00 Mpps offered" in out


def test_nothing_to_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(monkeypatch, capsys)
    assert code == 2 and "nothing to plan" in err


def test_cores_are_whole_and_never_overloaded() -> None:
    for offered in (1.0, 1e6, 3e6, 3.0001e6, 1e9):
        cores = cores_for(offered, 1e6)
        assert cores.load <= 1 + 1e-9 and cores.cores * cores.load == pytest.approx(offered / 1e6)
    assert cores_for(4e6, 1e6, workers=2).cores == 8


def test_one_branch_of_each_kind_of_splitter() -> None:
    spec = random_pipeline(3)
    planner = Planner(Inputs(Document(spec, file="random"), spec))
    plan = planner.plan({flow["name"]: 100_000 for flow in spec["flows"]})
    branches = branches_of(spec, plan)
    assert 1 <= len(branches) <= 4
    for branch in branches:
        less = planner.plan(
            {flow["name"]: 100_000 for flow in spec["flows"]}, controller="null", less=branch
        )
        rows = {row["module"]: row for row in less["modules"]}
        assert rows[branch.first]["share"] == 0
        # No packets vanish: the branch's share goes to the other branches.
        assert rows[branch.splitter]["share"] == pytest.approx(1, abs=1e-6)
