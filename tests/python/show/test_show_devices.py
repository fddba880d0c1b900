# SPDX-License-Identifier: BSD-3-Clause
"""test_show_devices.py - the view of modules on devices and of plans."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from batchplane.show.devices import render_devices, render_placement, stages_of
from batchplane.show.tables import render_show


def text_of(what: Any) -> str:
    file = io.StringIO()
    Console(width=200, file=file).print(what)
    return file.getvalue()


def place(name: str, share: float, **facts: Any) -> dict[str, Any]:
    return {
        "name": name, "share": share, "batch_pkts": 256, "done_pkts": 1000, "mean_run_ns": 30_000.0,
        **facts,
    }  # fmt: skip


GPU = {
    "kind": "simulated", "is_up": False, "busy_share": 0.25, "jobs": 40, "pkts": 9000,
    "late_jobs": 1, "modelled_w": 61.25, "fault": "",
}  # fmt: skip
STAGE = {
    "on": "gpu", "age_limit_ns": 150_000, "held_pkts": 12, "mean_job_pkts": 222.4,
    "mean_job_ns": 81_000.0, "jobs": {"full": 7, "age": 3, "idle": 1, "change": 0},
    "refused_share": 0.1, "taken_back_jobs": 2, "lost_pkts": 5,
    "devices": [place("gpu", 0.75, **GPU), place("inline", 0.25), place("cpu", 0.0, **GPU)],
}  # fmt: skip
TABLES = [
    {"module": "dpi", "kind": "dpi/stage", "stage": STAGE, "rules": 3},
    {"module": "x", "kind": "counter", "pkts": 1},
]


def test_every_place_with_a_share_has_a_line() -> None:
    shown = text_of(render_devices(TABLES))
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    assert lines[1][:4] == ["dpi", "gpu", "75%", "256"]
    assert lines[2][:3] == ["inline", "25%", "256"]
    assert ["gpu", "simulated", "away", "25%", "40", "9000", "1", "61.2"] in lines
    assert "150 us" in shown
    assert "10%" in shown


def test_what_a_sensor_tells_stands_beside_what_was_declared() -> None:
    places = [place("gpu", 0.75, **GPU, measured_w=124.5), place("inline", 0.25)]
    shown = text_of(render_devices([{**TABLES[0], "stage": {**STAGE, "devices": places}}]))
    lines = [line.split() for line in shown.splitlines()]
    assert ["gpu", "simulated", "away", "25%", "40", "9000", "1", "61.2", "124.5"] in lines
    assert ["inline", "worker", "up", *["-"] * 6] in lines
    assert "measured" not in text_of(render_devices(TABLES))


def test_a_pipeline_without_devices_says_so() -> None:
    assert "no module runs on a device" in text_of(render_devices(stages_of(TABLES[1:])))


def test_tables_leave_devices_to_their_own_view() -> None:
    shown = text_of(render_show("tables", TABLES))
    assert "rules=3" in shown
    assert "busy_share" not in shown


PLACED = {
    "is_on": True,
    "choice": {"policy": "power", "watt_cap": 100.0},
    "steps": 12, "changes": 2, "step_us": 640.4, "reason": "better",
    "plan": {"dpi": {"gpu": {"share": 0.75, "batch_pkts": 512}, "cpu": {"share": 0.2, "batch_pkts": 64}}},
    "apps": {"dpi": {"policy": "power", "demand_pps": 2e6, "served": 0.95, "budget_ns": 500_000.0}},
    "outcome": {
        "watts": 81.3, "delay_ns": {"dpi": 312_000.0}, "utilisation": {"gpu": 0.6, "cpu": 0.3},
        "is_feasible": True,
    },
}  # fmt: skip


def test_a_plan_is_shown_with_its_predictions() -> None:
    shown = text_of(render_placement(PLACED))
    assert "policy power, at most 100 W: 12 decisions, 2 changes, the last in 640 us" in shown
    assert "begun with: what the pipeline says, else guesses" in shown
    measured = {
        **PLACED,
        "choice": {**PLACED["choice"], "laws_origin": "dpi from a profile of May"},
    }
    assert "begun with: dpi from a profile of May" in text_of(render_placement(measured))
    assert "gpu 75% in 512s, cpu 20% in 64s" in shown
    assert "95%" in shown
    assert "312 us" in shown
    assert "81.3 W modelled; busy: gpu 60%, cpu 30%; last: better" in shown


def test_without_placement_the_view_says_so() -> None:
    assert "no `placement`" in text_of(render_placement({"is_on": False}))
