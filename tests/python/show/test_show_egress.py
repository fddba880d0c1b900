# SPDX-License-Identifier: BSD-3-Clause
"""test_show_egress.py - the view of schedulers: rates between two answers, names, the worst."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from snapshots import HELLO, snapshot

from batchplane.base.units import short_bits
from batchplane.show.egress import render_egress, schedulers_of, with_rates
from batchplane.show.report import render_report
from batchplane.show.tables import render_show
from batchplane.show.view import render_live


def text_of(what: Any) -> str:
    file = io.StringIO()
    Console(width=200, file=file).print(what)
    return file.getvalue()


def row(number: int, level: int, sent_bytes: int, **facts: Any) -> dict[str, Any]:
    return {
        "number": number, "level": level, "pkts": sent_bytes // 1000, "bytes": sent_bytes,
        "backlog_pkts": 7, "backlog_bytes": 7000, "marked_pkts": 0, "drops": {},
        "sojourn_p50_ns": 1 << 20, "sojourn_p99_ns": 1 << 24, **facts,
    }  # fmt: skip


def status(now_ns: int, sent_bytes: int, is_whole: bool = True) -> dict[str, Any]:
    flow = {
        "flow": 9, "bound_ns": 1_700_000, "parent": "alice", "share": 0.75, "min_rate_bps": 20_000_000,
        "drops": {"egress_shed": 12_345}, "marked_pkts": 3,
    }  # fmt: skip
    rows = [
        row(1024, 0, 2 * sent_bytes),
        row(1025, 1, sent_bytes, node="alice", share=1.0, ceil_bps=100_000_000),
        row(9, 2, sent_bytes, **flow),
    ]
    return {
        "discipline": "tree", "rate_bps": 10**9, "held_pkts": 7, "now_ns": now_ns, "rows": rows,
        "is_whole": is_whole, "n_flows": 400_000, "n_nodes": 100_500,
    }  # fmt: skip


def told(is_whole: bool = True) -> dict[str, Any]:
    """A quarter of a second in which alice got 2.5 MB."""
    before = {"module": "link", **status(1_000_000_000, 1_000_000)}
    return with_rates(before, {"module": "link", **status(1_250_000_000, 3_500_000, is_whole)})


def test_each_row_says_what_was_promised_and_what_is_carried() -> None:
    lines = [line.rstrip() for line in text_of(render_egress([told()])).splitlines()]
    assert lines[0] == "link  tree, 1.00 Gbit/s, 7 packets held"
    assert lines[2].split()[:6] == ["link", "-", "-", "-", "160", "Mbit/s"]
    assert lines[3].startswith("  alice ")
    assert "100 Mbit/s  100.0%  80.0 Mbit/s" in lines[3]
    assert lines[4].startswith("    flow 9  ")
    assert lines[4].split()[2:6] == ["20.0", "Mbit/s", "-", "75.0%"]
    assert lines[4].endswith("7      7000  1.05 ms  16.8 ms  1.70 ms       3  12.3 k egress_shed")


def test_of_many_the_worst_are_told_with_their_parents() -> None:
    shown = text_of(render_show("egress", [told(is_whole=False)]))
    assert "\nflow 9 of alice " in shown
    assert "the worst of 100500 nodes and 400000 flows" in shown


def test_a_flow_that_returns_has_no_negative_rate() -> None:
    before, now = status(10**9, 5_000_000), status(2 * 10**9, 0)
    now["rows"].append(row(10, 1, 100, flow=10, share=0.5))
    rows = with_rates(before, now)["rows"]
    assert [one.get("rate_bps") for one in rows] == [0, 0, 0, None]


def test_live_views_and_reports_have_a_block_for_each_scheduler() -> None:
    first, last = snapshot(1), snapshot(2)
    first["tables"] = [{"module": "link", "kind": "egress", "status": status(10**9, 0)}]
    last["tables"] = [
        {"module": "link", "kind": "egress", "status": status(2 * 10**9, 125_000)},
        {"module": "huge", "kind": "egress", "n_flows": 400_000},  # too many to total
    ]
    assert [one["module"] for one in schedulers_of(first, last)] == ["link"]
    for shown in (render_live(first, last, HELLO, 2.0), render_report(first, last, HELLO, {})):
        text = text_of(shown)
        assert "    flow 9" in text
        assert "1.00 Mbit/s" in text
    assert "status" not in text_of(render_show("tables", last["tables"]))


def test_rates_of_bits_have_three_digits() -> None:
    assert [short_bits(bps) for bps in (None, 0, 999, 16_000, 9_996_000, 2.5e9, 1e13)] == [
        "-", "0 bit/s", "999 bit/s", "16.0 kbit/s", "10.0 Mbit/s", "2.50 Gbit/s", "10.0 Tbit/s",
    ]  # fmt: skip
