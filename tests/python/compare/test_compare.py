# SPDX-License-Identifier: BSD-3-Clause
"""test_compare.py - comparing controllers: what is counted for each, and the conclusions."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, cast

import pytest
from rich.console import Console, RenderableType

from batchplane.compare.options import CompareOptions
from batchplane.compare.rows import Row, merged, row_between
from batchplane.compare.view import Stage, closing_lines, final_table, live_view, plain_line

MS = 1_000_000


def snapshot(now_ms: int, sent_pkts: int, gap_ms: int, batches: int, **slo: Any) -> dict[str, Any]:
    """A `show all` with the parts that rows are made of."""
    counted = {"periods": 100, "violated_periods": 30, "pkts": 1000, "late_pkts": 100,
               "p50_ns": 30_000.0, "p95_ns": 60_000.0}  # fmt: skip
    quiet = {"periods": 80, "violated_periods": 2, "pkts": 800, "late_pkts": 8,
             "p50_ns": 20_000.0, "p95_ns": 30_000.0}  # fmt: skip
    tight = {"flow": "tight", "slo_ns": 40_000, "counted": counted, "undisturbed": {**quiet, **slo}}
    loose = {"flow": "loose", "slo_ns": 900_000, "counted": counted, "undisturbed": quiet}
    free = {"flow": "free", "slo_ns": 0, "counted": counted, "undisturbed": quiet}
    return {
        "runtime": {
            "now_ns": now_ms * MS,
            "workers": [{"gaps": {"sum_ns": gap_ms * MS}}],
            "balance": {"sent_pkts": sent_pkts},
            "modules": [
                {"name": "acl", "pkts": sent_pkts, "batches": batches},
                {"name": "in", "pkts": sent_pkts, "batches": 1},
            ],
        },
        "slo": [loose, tight, free],
    }


def between(**slo: Any) -> Row:
    first, last = snapshot(1000, 1000, 50, 100), snapshot(2000, 1_001_000, 250, 62_600, **slo)
    return row_between("max", first, last, frozenset({"acl"}))


def test_what_the_machine_took_away_is_left_out() -> None:
    row = between()
    assert row.rate_pps == pytest.approx(1_000_000 / 0.8)
    assert row.held_up_ratio == pytest.approx(0.2) and row.is_disturbed
    assert row.batch_mean_pkts == pytest.approx(16.0)
    assert (row.worst_flow, row.slo_ns, row.n_flows) == ("tight", 40_000, 2)
    assert (row.p50_ns, row.p95_ns, row.is_undisturbed) == (20_000.0, 30_000.0, True)
    assert (row.periods, row.violated_periods, row.late_ratio) == (80, 2, 0.01)
    assert row.is_kept is True and row.of_slo == pytest.approx(0.75)
    assert between(p95_ns=50_000.0).is_kept is False


def test_with_hardly_a_period_undisturbed_all_count() -> None:
    first, last = snapshot(1000, 1000, 50, 100), snapshot(2000, 1_001_000, 250, 62_600)
    for slo in last["slo"]:
        slo["undisturbed"] = {**slo["undisturbed"], "periods": 9}
    row = row_between("max", first, last, frozenset())
    assert (row.p95_ns, row.periods, row.is_undisturbed) == (60_000.0, 100, False)
    assert row.is_kept is False and row.batch_mean_pkts is None


def test_without_slos_there_is_no_verdict() -> None:
    first, last = snapshot(1000, 1000, 50, 100), snapshot(2000, 1_001_000, 50, 62_600)
    last["slo"] = last["slo"][2:]
    row = row_between("null", first, last, frozenset({"acl"}))
    assert row.is_kept is None and row.p95_ns is None and row.n_flows == 0
    assert "runs at" in text_of(closing_lines([row, row], {"is_exact": True})[0])


def row(controller: str, rate_pps: float, p95_ns: float, **more: Any) -> Row:
    given: dict[str, Any] = {"held_up_ratio": 0.0, **more}
    return Row(controller, rate_pps, 9.0, 40_000, p95_ns / 2, p95_ns, "f", 0.01, 100, 2,
               n_flows=16, **given)  # fmt: skip


ROWS = [row("null", 4e6, 12_000), row("max", 6e6, 50_000), row("optimal", 5.5e6, 36_000)]


def text_of(renderable: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=160, no_color=True, highlight=False)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_shows_rate_gain_and_slo() -> None:
    lines = {
        line.split()[0]: line.split() for line in text_of(final_table(ROWS)).splitlines() if line
    }
    assert lines["null"][1:5] == ["4.00", "Mpps", "-", "9.00"]
    assert lines["max"][3] == "+50%" and "25% over" in " ".join(lines["max"])
    assert lines["optimal"][3] == "+38%" and "yes" in lines["optimal"]


def test_the_conclusion_is_what_was_measured() -> None:
    told = text_of(closing_lines(ROWS, {"is_exact": True})[0])
    assert told.startswith("optimal meets every SLO at 1.38 times the rate of null; max misses it")
    assert "92% of its rate" in told
    late = [*ROWS[:2], row("optimal", 3e6, 44_000)]
    told = text_of(closing_lines(late, {"is_exact": True})[0])
    assert told.startswith("optimal misses its SLO at 0.75 times the rate of null")
    lines = [text_of(line) for line in closing_lines(late, {"is_exact": False})]
    assert any("do not add up" in line for line in lines)


def test_disturbance_is_reported() -> None:
    calm = "".join(text_of(line) for line in closing_lines(ROWS, {}))
    assert "machine" not in calm
    rough = [*ROWS[:2], row("optimal", 5e6, 36_000, held_up_ratio=0.3)]
    assert "for up to 30% of the time" in "".join(
        text_of(line) for line in closing_lines(rough, {})
    )
    worse = [*ROWS[:2], row("optimal", 5e6, 36_000, held_up_ratio=0.6, is_undisturbed=False)]
    assert "too much for reliable figures" in "".join(
        text_of(line) for line in closing_lines(worse, {})
    )


def test_turns_compare_what_had_the_same_moments_of_the_machine() -> None:
    # A machine that is twice as fast in the second turn, and in the third halfway through it.
    null = merged([row("null", pps, 20_000) for pps in (4e6, 8e6, 4e6)])
    best = merged(
        [row("optimal", pps, p95) for pps, p95 in ((6e6, 9_000), (12e6, 8_000), (8e6, 7_000))]
    )
    assert best.rate_pps == pytest.approx(26e6 / 3) and best.p95_ns == 8_000
    assert best.ratio_to(null) == pytest.approx(1.5)
    assert best.periods == 3 * row("optimal", 1e6, 1).periods
    table = text_of(final_table([null, best]))
    assert "+50% [+50%, +100%]" in table
    said = "".join(text_of(line) for line in closing_lines([null, best], {}))
    assert "1.50 times the rate of null" in said and "median of 3 turns" in said
    assert merged([best]) is best


def test_a_batch_is_the_mean_over_all_turns() -> None:
    turns = [
        replace(row("max", 4e6, 1), batch_mean_pkts=8.0),
        replace(row("max", 8e6, 1), batch_mean_pkts=32.0),
    ]
    assert merged(turns).batch_mean_pkts == pytest.approx(12 / (4 / 8 + 8 / 32))
    free = [replace(each, slo_ns=None, p50_ns=None, p95_ns=None, late_ratio=None) for each in turns]
    assert merged(free).is_kept is None and merged(free).late_ratio is None


@pytest.mark.parametrize(("each_s", "turns"), [(0.5, 1), (2.5, 2), (5.0, 3), (60.0, 3)])
def test_no_turn_is_shorter_than_a_second(each_s: float, turns: int) -> None:
    assert CompareOptions(cast(Any, None), each_s=each_s).turns == turns


def test_bars_show_rate_and_delay_against_the_slo() -> None:
    stage = Stage("gateway", ("null", "max", "optimal"), 1, 7.0, 16.5, is_counted=True)
    lines = text_of(live_view(stage, ROWS[:2], 120)).splitlines()
    assert "7 of 16 s" in lines[0] and "SLO of each of 16 flows: 40.0 us" in lines[0]
    null, top, waiting = (
        next(x for x in lines if name in x) for name in ("null", "> max", "optimal")
    )
    assert top.count("█") > null.count("█") and "50.0 us" in top
    assert "│" in null, "the mark of the SLO"
    assert waiting.strip() == "optimal"
    settling = Stage("gateway", ("null", "max"), 1, 6.0, 11.0, is_counted=False)
    assert "settling" in text_of(live_view(settling, ROWS[:2], 120))
    assert "p95=50.0 us of 40.0 us" in plain_line(ROWS[1], 2.0)
