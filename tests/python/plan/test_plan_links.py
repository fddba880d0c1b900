# SPDX-License-Identifier: BSD-3-Clause
"""test_plan_links.py - plans of pipelines with a packet scheduler, held against simulations in which
the link is busy."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon_and_extension
from rich.console import Console

from batchplane import Simulation
from batchplane.commands.plan import PlanOptions, make_report
from batchplane.plan.planning import Report
from batchplane.plan.plot import draw_plan
from batchplane.plan.text import missed_lines, render_plan

pytestmark = needs_daemon_and_extension

_LINK = "what the link 'link' carries"


@pytest.fixture(autouse=True)
def nothing_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def planned(name: str, *words: str, **options: Any) -> Report:
    return make_report(name, words, PlanOptions(**options))


def text_of(report: Report) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(render_plan(report))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def sent_pps(name: str, **params: str) -> dict[str, float]:
    """By flow, what leaves between 50 and 200 ms."""
    frame = Simulation(name, **params).run("200ms").flow_periods
    late = frame[frame["time_ns"] > 50_000_000]
    seconds = (late["time_ns"].max() - 50_000_000) / 1e9
    pkts = late.groupby("flow", observed=False)["pkts"].sum()
    return {str(flow): float(n) / seconds for flow, n in pkts.items()}


def test_a_slow_link_carries_what_a_simulation_sends() -> None:
    plan = planned("subscribers", "discipline=fifo").plan
    assert plan["limited_by"] == "link" and plan["core_pps"] > 10 * plan["rate_pps"]
    # Ten times that is offered.
    sent = sent_pps("subscribers", discipline="fifo")
    assert sum(sent.values()) == pytest.approx(plan["rate_pps"], rel=0.02)


def test_just_below_the_planned_rate_everything_is_sent() -> None:
    plan = planned("shared_link").plan
    assert plan["limited_by"] == "link"
    times = 0.97 * plan["rate_pps"] / (100_000 + 24 * 100)
    params = {"first_pps": str(round(100_000 * times)), "other_pps": str(round(100 * times))}
    sent = sent_pps("shared_link", **params)
    assert sent["tenant_0"] == pytest.approx(float(params["first_pps"]), rel=0.02)
    # Beyond it, what is sent stays nearly the same; only its parts move.
    more = {key: str(round(1.1 * float(value))) for key, value in params.items()}
    assert sum(sent_pps("shared_link", **more).values()) == pytest.approx(
        plan["rate_pps"], rel=0.03
    )


def test_the_report_says_what_limits_and_what_the_link_takes() -> None:
    report = planned("shared_link", plot=Path("plan.png"))
    text = text_of(report)
    assert text.startswith("shared_link, planned: the link 'link' carries ")
    assert "1.00 Gbit/s" in text and "one core could carry" in text
    assert "what binds: the link" in text
    first = next(row for row in report.plan["flows"] if row["flow"] == "tenant_0")
    assert 50_000 < first["link_ns"] < first["measured_ns"]
    (link,) = report.as_json()["links"]
    assert link["limited_by"] == "rate_bps" and link["load"] == pytest.approx(1, rel=0.01)
    assert all(point["limited_by"] == "link" for point in report.as_json()["curve"])
    labels = draw_plan(report).axes[0].get_legend_handles_labels()[1]
    assert _LINK in labels
    assert any("more than the share of the link" in line for line in report.warnings)


def test_where_the_core_is_slower_it_limits() -> None:
    report = planned("shared_link", "link_bps=100000000000")
    assert report.plan["limited_by"] == "core"
    assert text_of(report).startswith("shared_link, planned: one core carries ")
    assert report.plan["links"][0]["load"] < 1


def test_an_slo_below_the_bound_is_missed_because_of_the_link() -> None:
    report = planned("shared_link", slos=("tenant_0=60us",))
    (line,) = missed_lines(report)
    assert "tenant_0" in line and "'link'" in line
    kept = planned("shared_link", slos=("tenant_0=200us",))
    assert not missed_lines(kept)


def test_more_than_the_link_carries_needs_no_cores() -> None:
    report = planned("shared_link", rate="5M")
    assert any("cores add nothing" in line for line in report.warnings)


def test_a_trees_node_is_named(tmp_path: Path) -> None:
    file = tmp_path / "house.yaml"
    file.write_text("""
name: house
modules:
  in: {kind: source, size_bytes: 1024}
  link:
    kind: egress
    discipline: tree
    rate_bps: 1000000000
    nodes: [{node: house, ceil_bps: 80000000}]
    flows: [{flow: 0, parent: house}]
  out: {kind: sink}
connect: [in -> link -> out]
flows: [{name: all, path: [in, link, out]}]
""")
    report = planned(str(file))
    (link,) = report.plan["links"]
    assert link["limited_by"] == "node house"
    assert "node house of the link 'link'" in text_of(report)


def test_flows_of_a_tree_may_have_no_bound() -> None:
    report = planned("bng")
    assert any("has no bound" in line for line in report.warnings)
    assert any("packet sizes" in line and "64 bytes" in line for line in report.warnings)
    assert "no bound" in text_of(report)


def test_sizes_that_are_given_are_not_assumed() -> None:
    assert not any("packet sizes" in line for line in planned("subscribers").warnings)
