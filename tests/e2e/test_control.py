# SPDX-License-Identifier: BSD-3-Clause
"""test_control.py - controllers on the real daemon: chosen, switched under load, explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from controlled import LOAD, control_of
from load import in_pkts
from waiting import wait_until

CONTROLLERS = ("max", "full", "optimal", "onoff", "feasdir", "full+age", "fixed(8)", "null")


@pytest.fixture
def gateway(batchplane: Commands) -> Commands:
    """A gateway at full load with the controller `optimal`."""
    batchplane.good("start", "gateway", *LOAD, "--controller", "optimal", "--slo", "*=2ms")
    return batchplane


def wait_for_steps(commands: Commands, count: int) -> None:
    """Waits for that many steps since the controller was chosen."""
    wait_until(lambda: control_of(commands)["steps"] >= count, f"{count} steps were made")


def test_a_run_reports_how_well_slos_were_met(batchplane: Commands) -> None:
    done = batchplane.run(
        "run", "gateway", *LOAD, "-d", "1.5", "--controller", "optimal", "--slo", "*=5ms",
        "--period", "5ms",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "controller optimal" in done.out, done.out
    assert "flow_0_0: SLO 5" in done.out, done.out
    assert "periods violated" in done.out, done.out


def test_triggers_and_budgets_are_explained(gateway: Commands) -> None:
    """The choices depend on the machine; that they are reported with reasons does not."""
    wait_for_steps(gateway, 20)

    def explained() -> Any:
        """The explanation of a period in which packets came: a busy machine also has periods
        without."""
        told = gateway.json("explain")
        acls = [row for row in told["modules"] if row["module"].startswith("acl")]
        return told if all(row["arrived_mean_pkts"] is not None for row in acls) else None

    told = wait_until(explained, "packets arrived in the latest period")
    assert [row["flow"] for row in told["flows"]] == [f"flow_0_{i}" for i in range(4)]
    acls = [row for row in told["modules"] if row["module"].startswith("acl")]
    assert len(acls) == 4
    for row in acls:
        assert row["arrived_mean_pkts"] == 8, row
        assert 0 <= row["trigger_pkts"] <= 32 and row["why"], row
    flow = gateway.json("explain", "flow_0_1")
    assert len(flow["flows"]) == 1
    for term in ("turnaround_ns", "fill_ns", "service_ns", "slack_ns", "multiplier_pps_per_us"):
        assert term in flow["flows"][0]
    for words in (("explain",), ("explain", "acl_0_2"), ("show", "slo"), ("show", "control")):
        assert gateway.good(*words).strip()
    rows = gateway.json("show", "slo")
    assert [row["slo_ns"] for row in rows] == [2_000_000] * 4
    assert all(row["pkts"] > 0 for row in rows)
    report = gateway.stop("gateway")
    assert report["control"]["controller"] == "optimal"
    assert report["control"]["failed_steps"] == 0
    assert report["balance"]["dropped_pkts"] == 0


def test_switching_under_load_loses_nothing(gateway: Commands) -> None:
    for name in CONTROLLERS:
        gateway.good("set", f"controller={name}", "controller.period=2ms")
        wait_for_steps(gateway, 5)
        assert control_of(gateway)["controller"] == name
        assert control_of(gateway)["events"] == []
    gateway.good("set", "controller=max")
    wait_for_steps(gateway, 2)
    buffers = gateway.json("show", "buffers")["buffers"]
    assert {row["trigger_pkts"] for row in buffers if row["module"].startswith("acl")} == {32}
    gateway.good("set", "controller=none")
    buffers = gateway.json("show", "buffers")["buffers"]
    assert {row["trigger_pkts"] for row in buffers} == {0}, "as the pipeline says"
    with gateway.client("gateway") as client:
        before = in_pkts(client)
        wait_until(lambda: in_pkts(client) > before, "traffic flows")
    report = gateway.stop("gateway")
    assert report["balance"]["dropped_pkts"] == 0
    assert report["balance"]["held_pkts"] == 0


def test_a_new_slo_takes_effect_and_resets_its_counters(gateway: Commands) -> None:
    # One nanosecond: shorter than the modules' own time on any CPU.
    wait_for_steps(gateway, 10)
    gateway.good("set", "slo", "flow_0_0", "1ns")
    steps = control_of(gateway)["steps"]
    wait_for_steps(gateway, steps + 3)
    row = gateway.json("show", "slo")[0]
    assert row["slo_ns"] == 1
    assert row["state"] == "inherent", row
    assert "take" in row["hint"], row
    assert row["late_pkts"] == row["pkts"] > 0
    gateway.stop("gateway")


def test_control_continues_after_an_apply(gateway: Commands, folder: Path) -> None:
    wait_for_steps(gateway, 5)
    gateway.good("apply", "gateway", *LOAD[1:], "nexthops=6")
    wait_for_steps(gateway, 5)
    told = gateway.json("explain")
    assert len([row for row in told["modules"] if row["module"].startswith("acl")]) == 6
    assert control_of(gateway)["events"] == []
    report = gateway.stop("gateway")
    assert report["balance"]["is_exact"] is True


def test_a_bad_controller_starts_nothing(batchplane: Commands) -> None:
    done = batchplane.run("run", "gateway", *LOAD, "-d", "1", "--controller", "best")
    assert done.code == 2, done.err
    assert "no controller 'best'" in done.err and "optimal" in done.err, done.err
    done = batchplane.run("run", "gateway", *LOAD, "-d", "1", "--period", "5ms")
    assert done.code == 2 and "--controller" in done.err, done.err


def test_costs_from_a_file_are_used(batchplane: Commands, folder: Path) -> None:
    kinds = ("port_in", "ether_type", "l2_table", "ipv4_lookup", "acl", "static_nat", "ttl",
             "mac_rewrite", "checksum", "sink")  # fmt: skip
    entries = [{"kind": kind, "cost_per_batch_ns": 50, "cost_per_pkt_ns": 5} for kind in kinds]
    file = folder / "costs.txt"
    file.write_text(json.dumps({"version": 2, "label": "given", "modules": entries}))
    batchplane.good("start", "gateway", *LOAD, "--controller", "full", "--costs", str(file))
    assert str(file) in control_of(batchplane)["costs"]
    batchplane.stop("gateway")


def test_demand_beyond_a_core_is_reported(batchplane: Commands) -> None:
    """A generator requests far more than any core carries; the full demand is reported."""
    batchplane.good("start", "gateway", *LOAD[:3], "rate_pps=200000000", "--controller", "null")
    wait_for_steps(batchplane, 5)
    runtime = batchplane.json("show", "runtime")
    rows = {row["module"]: row for row in runtime["inputs"]}
    (row,) = rows.values()
    assert row["backlog_pkts"] > row["taken_pkts"] > 0, "most of it waits for room"
    assert row["offered_pkts"] == sum(
        row[key] for key in ("taken_pkts", "lost_pkts", "waiting_pkts", "backlog_pkts")
    )
    assert 0 < row["fill_mean_pkts"] <= row["fill_max_pkts"] <= row["ring_pkts"] == 64
    batchplane.stop("gateway")
