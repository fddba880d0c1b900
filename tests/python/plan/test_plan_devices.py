# SPDX-License-Identifier: BSD-3-Clause
"""test_plan_devices.py - sets of devices compared with every plan on a grid, and the command."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon_and_extension, needs_extension
from command_line import run_command

from batchplane.base.problems import BadInput
from batchplane.base.version import __version__
from batchplane.costs.batch_law import BatchLaw
from batchplane.costs.costs import PRIOR, load_costs
from batchplane.costs.devices import device_profile_from, keep_device_profile
from batchplane.native.loader import load_native
from batchplane.plan.device_case import make_case
from batchplane.plan.devices import (
    POLICIES,
    AppLaw,
    DeviceCase,
    PlacedApp,
    PlacedDevice,
    bought,
    carried,
    offered_pps,
    plan_sets,
    sets_of,
)

BATCHES = [2**k for k in range(11)]
FREE = BatchLaw()
NAMES = ("inline", "cpu", "gpu")


def case_of(feed: BatchLaw = FREE) -> DeviceCase:
    """Two modules, the worker, a thread and a simulated card."""
    apps = [
        PlacedApp("dpi", "dpi", 400_000, 500, 400_000, 800_000, NAMES, 1024),
        PlacedApp("md5", "digest", 300_000, 500, 300_000, 600_000, NAMES, 1024),
    ]
    devices = [
        PlacedDevice("inline", "inline", 0, 0, 10),
        PlacedDevice("cpu", "cores", 1, 5, 30),
        PlacedDevice("gpu", "simulated", 9, 40, 180),
    ]
    laws = {
        ("dpi", "inline"): AppLaw(BatchLaw(100, 400, 0.8), feed, ""),
        ("md5", "inline"): AppLaw(BatchLaw(100, 300, 0.6), feed, ""),
        ("dpi", "cpu"): AppLaw(BatchLaw(700, 410, 0.8), feed, ""),
        ("md5", "cpu"): AppLaw(BatchLaw(700, 310, 0.6), feed, ""),
        ("dpi", "gpu"): AppLaw(BatchLaw(25_000, 20, 0.05), feed, ""),
        ("md5", "gpu"): AppLaw(BatchLaw(25_000, 15, 0.05), feed, ""),
    }
    return DeviceCase(apps, devices, laws)


def score(outcome: dict[str, Any]) -> float:
    """The same score as score() of src/placement: unserved packets count most."""
    return float("inf") if not outcome["is_feasible"] else (
        1e4 * (1 - outcome["served"]) + outcome["cost"]
    )  # fmt: skip


def grid(problem: dict[str, Any]) -> float:
    """The best of all plans in which each module is on one device, or on none."""
    ways: list[list[dict[str, Any]]] = [
        [{}] + [{d: {"share": 1.0, "batch_pkts": b}} for d in app["laws"] for b in BATCHES]
        for app in problem["apps"].values()
    ]
    evaluate = load_native().placement_evaluate
    plans = (dict(zip(problem["apps"], way, strict=True)) for way in itertools.product(*ways))
    return min(score(evaluate(problem, plan)) for plan in plans)


@needs_extension
def test_rows_are_no_worse_than_any_plan_of_a_grid_and_come_to_what_they_say() -> None:
    case = case_of()
    rows = plan_sets(case)
    assert [row.devices for row in rows[::3]] == list(sets_of(case)) and len(rows) == 7 * 3
    for row in rows:
        problem = case.problem(row.devices, row.policy)
        again = load_native().placement_evaluate(problem, row.plan)
        assert again == row.outcome
        assert row.watts == again["watts"] and row.served == pytest.approx(again["served"])
        delays = [again["delay_ns"]["dpi"] / 800_000, again["delay_ns"]["md5"] / 600_000]
        assert row.worst_delay == pytest.approx(max(delays))
        assert score(again) <= 1.01 * grid(problem), (row.devices, row.policy)
    best = {row.policy: row for row in rows if row.devices == NAMES}
    assert best["power"].watts <= min(best[p].watts for p in POLICIES) + 1e-9
    assert best["latency"].worst_delay <= best["power"].worst_delay + 1e-9


@needs_extension
def test_a_set_carries_what_a_grid_finds_possible_and_no_more() -> None:
    case = case_of()
    solve = load_native().placement_solve
    pps, is_bound = carried(case, ("cpu",), solve)
    assert not is_bound
    scale = pps / offered_pps(case)
    assert grid(case.problem(("cpu",), "throughput", scale * 1.02)) > 1e2, "something is refused"
    # The search may use batch sizes between those of the grid, and must not lose more than 1 %.
    assert grid(case.problem(("cpu",), "throughput", scale * 0.97)) <= len(case.apps)


@needs_extension
def test_the_worker_that_hands_over_ends_what_a_card_carries() -> None:
    solve = load_native().placement_solve
    free, is_free_bound = carried(case_of(), ("gpu",), solve)
    fed, is_bound = carried(case_of(BatchLaw(0, 200, 0)), ("gpu",), solve)
    assert not is_free_bound and is_bound
    # 200 ns per packet: 90 % of a second.
    assert fed == pytest.approx(0.9 / 200e-9, rel=0.01) and fed < free


@needs_extension
def test_a_card_buys_what_lies_between_the_sets() -> None:
    case = case_of()
    rows = plan_sets(case)
    with_card = {row.policy: row for row in rows if row.devices == NAMES}
    without = {row.policy: row for row in rows if row.devices == ("inline", "cpu")}
    told = bought(case, rows)
    assert [row["policy"] for row in told] == list(POLICIES)
    for row in told:
        assert row["carries_pps"] == with_card[row["policy"]].carries_pps
        assert row["without"]["watts"] == without[row["policy"]].watts
    assert told[0]["carries_pps"] > 2 * told[0]["without"]["carries_pps"]


def profile(**more: Any) -> dict[str, Any]:
    """A profile: a digest costs 111 ns per packet on a thread, and is slowed next to another."""
    law = {"batch_ns": 500.0, "pkt_ns": 111.0, "byte_ns": 0.0}
    feed = {"batch_ns": 100.0, "pkt_ns": 7.0, "byte_ns": 0.0}
    rows = [
        {"kind": kind, "params_key": "", "on": on, "feed": feed, **law}
        for kind in ("digest", "dpi", "classify")
        for on in ("inline", "threads")
    ]
    beside = [
        {"kind": "digest", "on": "inline", "beside": "dpi", "on_other": "threads", "factor": 1.4}
    ]
    return {
        "version": 2, "cpu": "Z80", "date": "2026-01-01", "daemon": __version__,
        "devices": [{"name": "inline", "kind": "inline"}, {"name": "threads", "kind": "cores"}],
        "laws": rows, "beside": beside, **more,
    }  # fmt: skip


PIPELINE: dict[str, Any] = {
    "name": "two",
    "modules": {
        "in": {"kind": "port_in"},
        "a": {"kind": "digest", "params": {}, "device": {"on": ["cpu", "inline", "card"]}},
        "b": {"kind": "dpi", "params": {}, "device": {"on": ["cpu", "box"], "batch_pkts": 512}},
        "out": {"kind": "sink"},
    },
    "devices": {
        "cpu": {"kind": "cores", "params": {"idle_w": 5, "active_w": 20}},
        "card": {"kind": "simulated", "params": {"laws": {"digest": {"batch_ns": 9000}}}},
        "box": {"kind": "opencl", "params": {}},
    },
    "flows": [{"name": "f", "path": ["in", "a", "b", "out"], "delay_slo_ns": 800_000}],
}


def test_a_pipeline_becomes_a_placement_problem() -> None:
    shares = {"a": 1.0, "b": 0.5}
    sizes = {"a": 300.0, "b": 400.0}
    case, told = make_case(
        PIPELINE, shares, 1e6, sizes, {"f": 800_000}, device_profile_from(profile()),
        load_costs(PRIOR), False,
    )  # fmt: skip
    a, b = case.apps
    assert (a.rate_pps, b.rate_pps, b.pkt_bytes) == (1e6, 5e5, 400.0)
    # Half of the SLO, for two modules on the path.
    assert (a.budget_ns, a.slo_ns, a.max_batch_pkts, b.max_batch_pkts) == (2e5, 8e5, 256, 512)
    assert case.laws["a", "cpu"].law.pkt_ns == 111 and case.laws["a", "cpu"].feed.pkt_ns == 7
    assert case.laws["a", "card"].law == BatchLaw(9000.0)
    assert "not here" in case.laws["a", "card"].origin
    assert case.laws["a", "card"].feed.pkt_ns == 7, "fed as a thread is"
    assert told == ["b on box: nobody has measured it, left out"]
    assert [row["factor"] for row in case.beside] == [1.4]
    # The worker may spend half of its time on modules, and is never busier than 90 %.
    assert case.problem(["inline"], "power")["apps"]["a"]["laws"]["inline"]["pkt_ns"] == (
        pytest.approx(111 * 0.9 / 0.5)
    )


def test_without_a_profile_a_thread_costs_the_worker_s_and_the_way() -> None:
    case, _ = make_case(PIPELINE, {"a": 1.0}, 1e6, {"a": 300.0}, {}, None, load_costs(PRIOR), False)
    inline, cpu = case.laws["a", "inline"].law, case.laws["a", "cpu"].law
    assert cpu == BatchLaw(inline.batch_ns + 600, inline.pkt_ns + 10)
    assert case.apps[0].budget_ns == 1e6, "nothing is promised"


@needs_daemon_and_extension
def test_the_command_tells_sets_and_what_a_card_buys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given = tmp_path / "z80.json"
    given.write_text(json.dumps(profile()))
    words = ("plan", "devices", "--devices", "--device-profile", str(given))
    assert run_command(monkeypatch, *words, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["watts_label"] == "modelled" and told["offered_pps"] == pytest.approx(150_000)
    assert {app["pkt_bytes"] for app in told["apps"]} == {256}
    assert len(told["sets"]) == 21 and "Z80" in told["laws_from"]
    monkeypatch.setenv("COLUMNS", "200")
    assert run_command(monkeypatch, *words) == 0
    text = capsys.readouterr().out
    assert "gpu (simulated), placed for power: carries" in text
    assert "inline + cpu + gpu (simulated)" in text


@pytest.mark.parametrize(
    "edit",
    [
        {"laws": [5]}, {"devices": [5]}, {"laws": None}, {"beside": [{"kind": "dpi"}]},
        {"laws": [{**profile()["laws"][0], "feed": 5}]},
    ],
)  # fmt: skip
def test_an_incomplete_profile_is_reported(edit: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="profile of devices"):
        device_profile_from({**profile(), **edit})


@needs_daemon_and_extension
def test_a_saved_profile_of_another_machine_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_device_profile(profile())
    assert run_command(monkeypatch, "plan", "devices", "--devices") == 2
    told = capsys.readouterr().err.strip()
    assert "is from another machine (Z80)" in told and len(told.splitlines()) == 1
