# SPDX-License-Identifier: BSD-3-Clause
"""test_show_control.py - controllers on the command line, and what is shown about them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from control_rows import CONTROL, EXPLAIN, SLO
from rich.console import Console, RenderableType

from batchplane.base.problems import BadInput
from batchplane.changes.settings import parse_settings
from batchplane.control.options import SAMPLED, ControlOptions, as_started, with_costs
from batchplane.show.control import render_control, render_explain, render_slo, slo_lines

NAMES = {"module": ["controller", "ttl"], "flow": ["voice"], "generator": [], "port": []}
PIPELINE: dict[str, Any] = {"name": "small", "modules": {"ttl": {"kind": "ttl", "params": {}}}}


def text_of(renderable: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=180, no_color=True, highlight=False)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_words_of_one_controller_are_one_change() -> None:
    words = [
        "controller=full",
        "voice.slo=80us",
        "controller.period=5ms",
        "controller.tolerance=0.2",
        "controller.pull_pkts=6",
    ]
    assert parse_settings(words, NAMES) == [
        {"what": "slo", "flow": "voice", "delay_slo_ns": 80_000},
        {
            "what": "controller",
            "name": "full",
            "period_ns": 5_000_000,
            "settings": {"tolerance": 0.2, "pull_pkts": 6},
        },
    ]


def test_a_module_may_be_called_controller() -> None:
    assert parse_settings(["controller.trigger=8"], NAMES) == [
        {"what": "trigger", "module": "controller", "trigger_pkts": 8}
    ]


def test_options_become_the_same_words() -> None:
    options = ControlOptions("optimal", "5ms", ("voice=80us", "*=1ms"), "costs.json")
    assert options.words() == [
        "voice.slo=80us",
        "*.slo=1ms",
        "controller=optimal",
        "controller.period=5ms",
        "controller.costs=costs.json",
    ]
    assert ControlOptions().words() == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["controller.period=5ms"], "no controller is given"),
        (["controller=max", "controller.period=5"], "'5' is not a control period (1ms to 1s)"),
        (["controller=max", "controller.period=2s"], "'2s' is not a control period"),
        (["controller=max", "controller.tolerance=x"], "'x' is not a number"),
    ],
)
def test_bad_words(words: list[str], line: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings(words, NAMES)
    assert line in caught.value.problems[0].line()


def test_bad_options() -> None:
    for options in (ControlOptions(period="5ms"), ControlOptions(costs="x"),
                    ControlOptions(slos=("voice",))):  # fmt: skip
        with pytest.raises(BadInput):
            options.words()


def test_costs_come_from_the_file_or_are_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "costs.json"
    entry = {"kind": "ttl", "cost_per_batch_ns": 7, "cost_per_pkt_ns": 2}
    file.write_text(json.dumps({"version": 2, "label": "given", "modules": [entry]}))
    given = with_costs({"what": "controller", "name": "max", "costs": str(file)}, PIPELINE)
    assert given["costs"] == {"ttl": {"cost_per_batch_ns": 7.0, "cost_per_pkt_ns": 2.0}}
    built_in = with_costs({"what": "controller", "name": "max"}, PIPELINE)
    assert built_in["costs_origin"] == "built-in"
    assert 1 < built_in["hop_costs"]["hop_send_per_pkt_ns"] < 100
    assert given["hop_costs"] == built_in["hop_costs"], "a file without the engine's own costs"
    assert built_in["costs"]["ttl"]["cost_per_pkt_ns"] > 0
    unknown = {"name": "x", "modules": {"y": {"kind": "no_such_kind", "params": {}}}}
    assert with_costs({"what": "controller", "name": "max"}, unknown)["costs_origin"] == SAMPLED
    assert "costs" not in with_costs({"what": "controller", "name": "none"}, PIPELINE)
    with pytest.raises(BadInput):
        with_costs({"what": "controller", "name": "max", "costs": str(file)}, unknown)


def test_profiles_are_of_the_pipeline_as_it_was_started(tmp_path: Path) -> None:
    socket = tmp_path / "small.sock"
    saved = {"name": "small", "modules": {"ttl": {"kind": "ttl", "params": {"all": "defaults"}}}}
    assert as_started(socket, saved) is saved
    file = tmp_path / "small.pipeline"
    file.write_text(json.dumps(PIPELINE))
    assert as_started(socket, saved) == PIPELINE
    assert as_started(socket, {**saved, "modules": {"new": {"kind": "ttl"}}})["modules"] == {
        "new": {"kind": "ttl"}
    }, "after an apply"
    file.write_text("{")
    assert as_started(socket, saved) is saved


def test_the_verdict_since_the_start_is_apart_from_that_of_the_last_period() -> None:
    row = {**SLO[0], "state": "met", "state_since": "violating", "late_ratio": 0.44}
    cells = text_of(render_slo([row])).splitlines()[1].split()
    assert cells[-2:] == ["violating", "met"]
    report = {"control": CONTROL, "slo": [row]}
    text = "\n".join(text_of(line) for line in slo_lines(report))
    assert "violating, 44.00% of" in text


def test_slos_are_shown() -> None:
    text = text_of(render_slo(SLO))
    assert "3 of 200 (2 held up)" in text
    assert "-4.00 us" in text, "headroom that is missing"
    voice = next(line for line in text.splitlines() if line.startswith("voice"))
    last, whole = "28.0 us  66.0 us  67.0 us", "30.0 us  75.0 us  95.0 us"
    assert last in voice and whole in voice, voice
    assert "500 (0.25%)" in voice, "late packets"
    assert "video: its modules alone take 6.0 us" in text
    assert "p95 of the last period" in text
    assert "since the controller or the SLO was set" in text
    uncontrolled = [{**row, "periods": None, "violated_periods": None} for row in SLO]
    assert "since the start" in text_of(render_slo(uncontrolled))


def test_the_controller_is_shown() -> None:
    text = text_of(render_control(CONTROL))
    for told in (
        "optimal every 10.0 ms, p95 of delays, costs: built-in",
        "200 steps, 1 failed; control uses 0.12% of a worker's time",
        "load 42%, at most 7.50 Mpps",
        "acl takes 2.10 times its profiled cost",
        "trigger 99 is out of range (4 times, last in period 198)",
        "0 -> 12",
    ):
        assert told in text, text
    rows = {line.split("  ")[0]: line.split()[-6:] for line in text.splitlines()}
    assert rows["read counters"] == ["32.0", "us", "70.0", "us", "99.0", "us"]
    assert rows["run controller"] == ["21.0", "us", "48.0", "us", "90.0", "us"]
    assert rows["change buffers"] == ["7.10", "us", "12.0", "us", "13.0", "us"]
    assert rows["total"] == ["60.0", "us", "150", "us", "400", "us"]
    assert "no controller is running" in text_of(render_control({"controller": "none"}))


def test_credits_and_polls_are_among_the_last_decisions() -> None:
    decision = {
        "now_ns": 5_000_000,
        "changes": [],
        "credits": [{"module": "q", "from_pkts": 64, "to_pkts": 128}],
        "polls": [{"task": 1, "inputs": ["in", "also"], "from_pkts": 32, "to_pkts": 4}],
    }
    text = text_of(render_control({**CONTROL, "decisions": [decision]}))
    head, credit, poll = text.splitlines()[-3:]
    assert head.split()[0] == "ago" and credit.split() == ["last", "q", "64", "->", "128"]
    assert poll.split() == ["in,", "also", "32", "->", "4"]
    for line, column in ((credit, "credit"), (poll, "polls")):  # numbers end with their heading
        assert len(line.rstrip()) == head.index(column) + len(column), text


def test_a_program_has_the_name_that_its_user_knows() -> None:
    data = {**CONTROL, "controller": "remote", "label": "mine.py", "has_program": False}
    text = text_of(render_control(data))
    assert "mine.py every 10.0 ms" in text
    assert "no program is connected" in text
    assert "no program" not in text_of(render_control({**data, "has_program": True}))


def test_an_explanation_has_every_term() -> None:
    text = text_of(render_explain(EXPLAIN))
    for told in (
        "ring and turnaround",
        "-1.00 us  shorter than the model predicts",
        "ttl: fill",
        "for 12 packets",
        "4.00 us of it in out",
        "slack",
        "1 us more SLO would add 12.5 kpps",
        "a flow's budget: voice",
        "cost of holding a packet: 1.50 ns",
    ):
        assert told in text, text


def test_the_last_report_lists_each_slo() -> None:
    report = {"slo": SLO, "control": CONTROL}
    text = "\n".join(text_of(line) for line in slo_lines(report))
    assert "voice: SLO 80.0 us met, 0.25% of 200 k packets late, 3 of 200 periods" in text, text
    assert "2 of them while the machine held the worker up" in text
    assert "bulk" not in text, "nothing was promised to it"
    assert slo_lines({}) == [] and slo_lines({"control": {"controller": "none"}, "slo": SLO}) == []
