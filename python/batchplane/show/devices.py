# SPDX-License-Identifier: BSD-3-Clause
"""devices.py - modules on devices, and the decisions of placement."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.problems import BadInput, Problem
from ..base.units import short_duration, short_rate
from ..daemon.client import Client

_CAUSES = ("full", "age", "idle", "change")


def collect_devices(client: Client, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of `show devices`, which takes no arguments."""
    if arguments:
        raise BadInput(Problem("show devices takes no arguments", "command line", "show"))
    return stages_of(client.show("tables"))


def stages_of(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The modules that run on devices, from the answer of `show tables`."""
    return [row for row in tables if "stage" in row]


def render_devices(tables: list[dict[str, Any]]) -> RenderableType:
    """Where each module runs and in what batches, and the state of its devices."""
    stages = stages_of(tables)
    if not stages:
        return Text("no module runs on a device (docs/devices.md)", "dim")
    modules = plain_table(
        "<module", "<on", "share", "batch", "age limit", "held", "mean batch", "mean delay",
        "sent full", "age", "idle", "refused", "taken back", "no room",
    )  # fmt: skip
    devices: dict[str, dict[str, Any]] = {}
    for row in stages:
        stage = row["stage"]
        name = row["module"]
        for place in stage["devices"]:
            devices.setdefault(place["name"], place)
            if not place["share"]:
                continue
            jobs = [str(stage["jobs"][cause]) for cause in _CAUSES[:3]]
            modules.add_row(
                name, place["name"], f"{place['share']:.0%}", str(place["batch_pkts"]),
                short_duration(stage["age_limit_ns"]), str(stage["held_pkts"]),
                f"{stage['mean_job_pkts']:.1f}", short_duration(stage["mean_job_ns"]), *jobs,
                f"{stage['refused_share']:.0%}", str(stage["taken_back_jobs"]),
                str(stage["lost_pkts"]),
            )  # fmt: skip
            name = ""
    has_sensor = any("measured_w" in device for device in devices.values())
    facts = plain_table(
        "<device", "<kind", "<state", "busy", "batches", "packets", "late", "W, modelled",
        *(["measured"] if has_sensor else []),
    )  # fmt: skip
    for name, device in devices.items():
        measured = [_watts(device.get("measured_w"))] if has_sensor else []
        if "kind" not in device:
            facts.add_row(name, "worker", "up", *["-"] * 5, *measured)
            continue
        state = "up" if device["is_up"] else device["fault"] or "away"
        facts.add_row(
            name, device["kind"], state, f"{device['busy_share']:.0%}",
            str(device["jobs"]), str(device["pkts"]), str(device["late_jobs"]),
            _watts(device["modelled_w"]), *measured,
        )  # fmt: skip
    return Group(modules, Text(""), facts)


def _watts(watts: float | None) -> str:
    return "-" if watts is None else f"{watts:.1f}"


def render_placement(data: dict[str, Any]) -> RenderableType:
    """The plan in force, its predictions, and the reason for it."""
    if not data.get("is_on"):
        return Text(
            "modules stay on the devices they are on: no `placement` (docs/devices.md)", "dim"
        )
    choice = data["choice"]
    cap = f", at most {choice['watt_cap']:g} W" if choice["watt_cap"] else ""
    told = Text(
        f"policy {choice['policy']}{cap}: {data['steps']} decisions, {data['changes']} changes, "
        f"the last in {data['step_us']:.0f} us\n"
        f"begun with: {choice.get('laws_origin') or 'what the pipeline says, else guesses'}"
    )
    if "plan" not in data:
        return told
    table = plain_table("<module", "<policy", "demand", "<devices", "served", "delay", "budget")
    for name, app in data["apps"].items():
        places = ", ".join(
            f"{device} {place['share']:.0%} in {place['batch_pkts']}s"
            for device, place in data["plan"][name].items()
        )
        table.add_row(
            name, app["policy"], short_rate(app["demand_pps"]), places or "none",
            f"{app['served']:.0%}", short_duration(data["outcome"]["delay_ns"][name]),
            short_duration(app["budget_ns"]),
        )  # fmt: skip
    outcome = data["outcome"]
    busy = ", ".join(f"{name} {share:.0%}" for name, share in outcome["utilisation"].items())
    state = "" if outcome["is_feasible"] else "  what is promised cannot be kept at this load"
    return Group(
        told, Text(""), table, Text(""),
        Text(f"{outcome['watts']:.1f} W modelled; busy: {busy}; last: {data['reason']}{state}"),
    )  # fmt: skip
