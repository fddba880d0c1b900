# SPDX-License-Identifier: BSD-3-Clause
"""test_pipeline_controller.py - a pipeline's own controller: read, rejected, written, given its
costs, simulated."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon_and_extension
from command_line import run_command
from rich.console import Console

from batchplane.base.problems import BadInput
from batchplane.cli.change import difference
from batchplane.control.options import ControlOptions, controlled
from batchplane.lang.load import load_pipeline
from batchplane.lang.pipeline import Pipeline
from batchplane.lang.yaml_writer import to_yaml

FILE = """\
name: demo
controller: {controller}
modules:
  in: {{kind: source}}
  ttl: {{kind: ttl}}
  out: {{kind: sink}}
connect: [in -> ttl -> out]
flows: [{{name: all, path: [in, ttl, out], delay_slo: 1ms}}]
"""
FULL = "{name: full, period: 5ms, settings: {tolerance: 0.1, pull_pkts: 2}, costs_file: paper}"


def written(tmp_path: Path, controller: str) -> str:
    path = tmp_path / "demo.yaml"
    path.write_text(FILE.format(controller=controller))
    return str(path)


def test_a_controller_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    document = load_pipeline(written(tmp_path, FULL))
    assert document.problems == []
    assert document.pipeline["controller"] == {
        "name": "full",
        "period_ns": 5_000_000,
        "settings": {"tolerance": 0.1, "pull_pkts": 2},
        "costs_file": "paper",
    }
    assert document.where("controller.settings").endswith("demo.yaml:2")
    text = to_yaml(document.pipeline)
    assert f"controller: {FULL}" in text.splitlines()
    given = {"costs": {"ttl": {"cost_per_batch_ns": 1}}, "costs_origin": "paper, given"}
    pipeline = {**document.pipeline, "controller": {**document.pipeline["controller"], **given}}
    assert to_yaml(pipeline) == text, "costs are found again by their name"
    short = load_pipeline(written(tmp_path, "optimal")).pipeline
    assert short["controller"] == {"name": "optimal"}


@pytest.mark.parametrize(
    ("controller", "told"),
    [
        ("{period: 5ms}", "controller: 'name' is missing"),
        ("{name: full, period: 5}", "controller.period: 'period' needs a unit"),
        ("{name: full, period: 5s}", "controller.period_ns"),
        ("{name: full, perod: 5ms}", "unknown key 'perod_ns'"),
        ("{name: full, settings: {tolerance: much}}", "controller.settings.tolerance"),
        ("steady.py", "run with --controller steady.py"),
    ],
)
def test_mistakes_in_a_controller_are_reported(tmp_path: Path, controller: str, told: str) -> None:
    lines = [problem.line() for problem in load_pipeline(written(tmp_path, controller)).problems]
    assert lines and told in lines[0] and "demo.yaml:2" in lines[0], lines


def test_a_pipeline_of_python_names_its_controller() -> None:
    pipeline = Pipeline("p")
    pipeline.module("in", "source")
    pipeline.controller("optimal", period="5ms", percentile=0.99)
    made = pipeline.to_json()["controller"]
    assert made == {"name": "optimal", "period_ns": 5_000_000, "settings": {"percentile": 0.99}}


def pipeline_of(tmp_path: Path, controller: str) -> dict[str, Any]:
    return load_pipeline(written(tmp_path, controller)).pipeline


def test_its_controller_gets_its_costs(tmp_path: Path) -> None:
    pipeline, rest = controlled(pipeline_of(tmp_path, FULL), ControlOptions(slos=("all=2ms",)))
    own = pipeline["controller"]
    # Its own 1 + n ns, and the hop in front of it.
    assert own["costs"]["ttl"] == {"cost_per_batch_ns": 14.0, "cost_per_pkt_ns": 6.0}
    assert own["costs_origin"] == "paper, given" and own["costs_file"] == "paper"
    assert (own["name"], own["period_ns"]) == ("full", 5_000_000)
    assert rest.words() == ["all.slo=2ms"], "nothing of the controller is left to be set"


def test_the_command_line_takes_precedence(tmp_path: Path) -> None:
    wanted = ControlOptions(period="20ms", costs="prior")
    pipeline, rest = controlled(pipeline_of(tmp_path, FULL), wanted)
    own = pipeline["controller"]
    assert (own["name"], own["period_ns"], own["costs_file"]) == ("full", 20_000_000, "prior")
    assert rest.words() == []
    pipeline, rest = controlled(pipeline_of(tmp_path, FULL), ControlOptions(controller="max"))
    assert "controller" not in pipeline and rest.words() == ["controller=max"]
    with pytest.raises(BadInput, match="it needs a controller"):
        plain = {key: value for key, value in pipeline.items() if key != "controller"}
        controlled(plain, wanted)[1].words()


def test_moves_and_controllers_are_told_by_apply() -> None:
    out = Console(file=io.StringIO(), width=200, no_color=True)
    moved = [{"module": name, "from": "w0", "to": "w1"} for name in ("in", "ttl")]
    change = {"added": [], "changed": ["ttl"], "moved": moved, "kept": ["out"]}
    difference({**change, "controller": {"from": "none", "to": "full"}}, out)
    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue().splitlines() == [
        "~ ttl",
        "> 2 moved from w0 to w1 with their state: in, ttl",
        "~ controller: none -> full",
        "1 kept with their state",
    ]


@needs_daemon_and_extension
def test_simulate_takes_the_controller_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "{name: fixed(8), period: 2ms}")
    words = ("simulate", file, "--costs", "prior", "-d", "0.01", "--json")
    assert run_command(monkeypatch, *words) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["controller"], result["period_ns"]) == ("fixed(8)", 2_000_000)
    assert run_command(monkeypatch, *words, "-c", "max", "--period", "4ms") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["controller"], result["period_ns"]) == ("max", 4_000_000)
