# SPDX-License-Identifier: BSD-3-Clause
"""test_egress.py - shares of a link on a running daemon, and changes while it is overloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands
from waiting import wait_until

PKTS = 4000
_ALL_FLOOD = ("gold_pps=60000", "silver_pps=60000", "flood_pps=60000")


def _released(commands: Commands) -> list[int]:
    flows = commands.json("show", "tables", "link")["flows"]
    return [int(flow["released_pkts"]) for flow in flows]


def _shares(commands: Commands) -> list[float]:
    """The flows' shares of the next packets that leave."""
    before = _released(commands)
    wait_until(lambda: sum(_released(commands)) >= sum(before) + PKTS, "packets leave")
    sent = [now - then for now, then in zip(_released(commands), before, strict=True)]
    return [each / sum(sent) for each in sent]


@pytest.fixture
def overloaded(folder: Path) -> Iterator[Commands]:
    """Three subscribers, each sending five times the link's rate."""
    commands = Commands(folder)
    commands.good("start", "subscribers", *_ALL_FLOOD)
    try:
        yield commands
    finally:
        report = commands.stop("subscribers")
    assert report["balance"]["is_exact"]


def test_shares_follow_weights_and_their_changes(overloaded: Commands) -> None:
    assert _shares(overloaded) == pytest.approx([0.8, 0.1, 0.1], abs=0.05)
    overloaded.good("set", "link", "replace", "flow=0", "weight=1")
    _shares(overloaded)  # packets that were already queued
    assert _shares(overloaded) == pytest.approx([1 / 3] * 3, abs=0.05)
    overloaded.good("set", "link", "set", "rate_bps=200000000")
    saved = overloaded.json("show", "tables", "link")
    assert saved["rate_bps"] == 200_000_000


def test_each_flow_is_shown_with_its_share_and_rate(overloaded: Commands) -> None:
    (told,) = overloaded.json("show", "egress")
    assert told["module"] == "link"
    flows = [row for row in told["rows"] if "flow" in row]
    assert [row["share"] for row in flows] == [0.8, 0.1, 0.1]
    assert sum(row["rate_bps"] for row in flows) == pytest.approx(told["rows"][0]["rate_bps"])
    assert all(row["rate_bps"] > 0 and row["drops"]["egress_full"] > 0 for row in flows)
    assert "flow 2" in overloaded.good("show", "egress", "by=sojourn")
    refused = overloaded.run("show", "egress", "nobody")
    assert (refused.code, len(refused.err.strip().splitlines())) == (2, 1)


def test_bad_changes_are_one_line(overloaded: Commands) -> None:
    for words, told in (
        (("replace", "flow=0", "weight=0"), "from 1 to 65536"),
        (("replace", "flow=9"), "there is no such flow"),
        (("delete", "flow=0"), "flow 0 takes what no other flow has"),
        (("set", "rate_bps=-1"), "rate_bps"),
    ):
        done = overloaded.run("set", "link", *words)
        assert done.code == 2, words
        assert told in done.err
        assert len(done.err.strip().splitlines()) == 1


_TWO_WORKERS = """
name: two_workers
workers: [{name: a}, {name: b}]
modules:
  in0: {kind: source, size_bytes: 1000}
  in1: {kind: source, size_bytes: 1000, worker: b}
  mark0: {kind: set_meta, mark: 0}
  mark1: {kind: set_meta, mark: 1}
  link: {kind: egress, rate_bps: 100000000, flows: [{flow: 0, weight: 8}, {flow: 1, weight: 2}]}
  out: {kind: sink}
connect:
  - in0 -> mark0 -> link -> out
  - in1 -> mark1 -> link
flows:
  - {name: heavy, path: [in0, link, out]}
  - {name: light, path: [in1, link, out]}
"""


def test_two_workers_fill_one_scheduler(folder: Path) -> None:
    pipeline = folder / "two_workers.yaml"
    pipeline.write_text(_TWO_WORKERS)
    commands = Commands(folder)
    commands.good("check", str(pipeline))
    commands.good("start", str(pipeline))
    try:
        assert _shares(commands) == pytest.approx([0.8, 0.2], abs=0.05)
        assert "link@b" in commands.good("show", "buffers", "--json")
        saved = commands.good("save")
        assert "@" not in saved
        again = folder / "again.yaml"
        again.write_text(saved)
        commands.good("apply", str(again))
        assert _shares(commands) == pytest.approx([0.8, 0.2], abs=0.05)
    finally:
        report = commands.stop("two_workers")
    assert report["balance"]["is_exact"]
    assert {flow["name"] for flow in report["flows"]} >= {"heavy", "light"}
