# SPDX-License-Identifier: BSD-3-Clause
"""Edge cases of simulations: how they end, lost packets, and invalid requests."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon_and_extension
from command_line import run_command

from batchplane.base.problems import BadInput, BatchplaneError, Problem, RunFailed
from batchplane.control.python import GuardedController, Nonsense, plain_decision
from batchplane.sim.simulation import Simulation

pytestmark = needs_daemon_and_extension

SHORT = ("-d", "5ms")
# Buffers that only an age limit long after the end would empty.
HELD = """\
name: held
engine: {idle: hold, stranding_limit: 1ms}
ports: {link: {kind: ring, size_pkts: 64}}
generators:
  - {name: load, port: link, rate_pps: 1000}
modules:
  in: {kind: port_in, port: link}
  a: {kind: cost, cost_per_batch_ns: 100, cost_per_pkt_ns: 10, trigger: 32, age_limit: 900ms}
  out: {kind: sink}
connect:
  - in -> a -> out
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--compare", "nope,null"), "'nope'"),
        (("--compare", "fixed(99),null"), "99"),
        (("--compare", "missing.py,null"), "missing.py"),
        (("--controller", "nope", "--seeds", "3"), "'nope'"),
    ],
)
def test_mistakes_found_in_other_processes_are_told(
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(monkeypatch, "simulate", "simple", *SHORT, "--jobs", "2", *words) == 2
    told = capsys.readouterr().err
    assert said in told and "memory" not in told


@pytest.mark.parametrize(
    "error", [BadInput(Problem("no", "a.yaml:3", "rate", "try 1")), RunFailed("died", "again")]
)
def test_errors_cross_processes_whole(error: BatchplaneError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), back.lines(), str(back)) == (type(error), error.lines(), str(error))


def test_the_end_releases_what_limits_would_hold_longer(tmp_path: Path) -> None:
    file = tmp_path / "held.yaml"
    file.write_text(HELD)
    result = Simulation(str(file), costs="prior").run("20ms", "none", is_drained=True)
    balance = result.report["balance"]
    assert balance["sent_pkts"] > 0
    assert balance["held_pkts"] == balance["in_flight_pkts"] == 0
    assert result.warnings == []


def test_losses_at_a_full_ring_are_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = tmp_path / "drop.json"
    machine.write_text(json.dumps({"overflow": "drop"}))
    words = ("simulate", "simple", "rate_pps=40000000", *SHORT, "--machine", str(machine))
    assert run_command(monkeypatch, *words) == 0
    told = capsys.readouterr().out
    found = re.search(r"load: (\d+) of (\d+) packets were lost \(ring full\)", told)
    assert found is not None
    lost, offered = (int(word) for word in found.groups())
    assert offered == pytest.approx(200_000, rel=0.01)
    assert lost > 100_000


def test_a_trigger_above_the_batch_size_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(monkeypatch, "simulate", "simple", *SHORT, "--set", "nf_0.trigger=99") == 2
    assert "trigger 99 is larger than the batch size 32" in capsys.readouterr().err
    sim = Simulation("simple", costs="prior")
    with pytest.raises(BadInput, match="larger than the batch size"):
        sim.set("nf_0.trigger=99")
    with pytest.raises(BadInput, match="nix"):
        sim.show("nix")


def test_an_invalid_event_is_skipped(tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "events:\n  - {at: 1ms, set: ['nf_0.trigger=99']}\n  - {at: 2ms, set: ['nf_0.trigger=8']}\n"
    )
    result = Simulation("simple", costs="prior", scenario=scenario).run("5ms")
    assert [text.split(":")[0] for text in result.events] == ["0.002 s"]
    assert "99" in result.warnings[0] and "skipped" in result.warnings[0]


MODEL: dict[str, Any] = {
    "batch_limit_pkts": 32,
    "modules": [{"name": "a", "has_buffer": True}],
    "flows": [],
}


@pytest.mark.parametrize(
    "answer",
    [
        {"changes": [], "flows": "x"},
        {"changes": [], "flows": [1, 2]},
        {"changes": [], "predicted_load": "x"},
        {"changes": [], "predicted_pps": float("nan")},
    ],
)
def test_nonsense_beside_the_changes_is_nonsense(answer: Any) -> None:
    with pytest.raises(Nonsense):
        plain_decision(answer, MODEL)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("kind", [SystemExit, BaseException, Unprintable])
def test_no_way_to_fail_ends_the_run(kind: type[BaseException]) -> None:
    class Broken:
        def step(self, _period: Any) -> Any:
            raise kind

    guard = GuardedController(Broken(), MODEL)
    assert guard.decide({}, 1) is None
    assert kind.__name__ in guard.faults[0].message
    result = Simulation("simple", costs="prior").run("30ms", Broken())
    assert len(result.faults) == 3


def test_a_file_that_exits_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "exits.py"
    file.write_text("import sys\n\nsys.exit(4)\n")
    words = ("simulate", "simple", *SHORT, "--controller", str(file))
    assert run_command(monkeypatch, *words) == 2
    assert "exits.py:3" in capsys.readouterr().err


def test_a_trace_has_as_many_packets_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "a.csv"
    words = ("simulate", "simple", "-d", "1ms", "--trace", str(trace), "--trace-packets", "10")
    assert run_command(monkeypatch, *words, "--plot", str(tmp_path / "p")) == 0
    assert len(trace.read_text().splitlines()) == 1 + 10
