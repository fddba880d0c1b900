# SPDX-License-Identifier: BSD-3-Clause
"""cores.py - `show cores`: the load of each worker, and the rings between workers."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_rate
from ..daemon.client import Client

INTERVAL_S = 0.5


def collect_cores(client: Client, _filters: dict[str, Any]) -> dict[str, Any]:
    """Loads and rates over half a second, and the current state of the rings between workers."""
    before = client.show("runtime")
    time.sleep(INTERVAL_S)
    now = client.show("runtime")
    tables = {row["module"]: row for row in client.show("tables") if row.get("kind") == "queue"}
    return cores_of(before, now, client.show("graph")["edges"], tables)


def cores_of(
    before: dict[str, Any],
    now: dict[str, Any],
    edges: list[dict[str, Any]],
    queues: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """From two answers of `show runtime`, the graph's edges, and the tables of queues."""
    seconds: float = max(now["now_ns"] - before["now_ns"], 1) / 1e9
    modules = {row["name"]: row for row in now["modules"]}
    earlier = {row["name"]: row for row in before["modules"]}
    inputs = {row["module"]: row for row in now["inputs"]}

    def rate(name: str) -> float:
        before_pkts = earlier[name]["pkts"] if name in earlier else 0
        return float(modules[name]["pkts"] - before_pkts) / seconds

    rings = []
    for edge in edges:
        name = edge["from"]
        if modules.get(name, {}).get("kind") != "queue":
            continue
        # A queue is filled at its position in the list, and through its doors: NAME@WORKER.
        base = name.partition("@")[0]
        rings.append(
            {
                "ring": name,
                "from": modules[name]["worker"],
                "to": modules[edge["to"]]["worker"],
                "rate_pps": rate(name),
                "waiting_pkts": inputs.get(base, {}).get("waiting_pkts", 0),
                "fill_mean_pkts": inputs.get(base, {}).get("fill_mean_pkts", 0.0),
                "credit_pkts": queues.get(base, {}).get("credit_pkts"),
                "poll_pkts": inputs.get(base, {}).get("poll_pkts"),
                "lost_pkts": inputs.get(base, {}).get("lost_pkts", 0),
            }
        )
    return {
        "cores": [_core(row, before, now, seconds) for row in now["workers"]],
        "rings": rings,
    }


def _core(
    worker: dict[str, Any], before: dict[str, Any], now: dict[str, Any], seconds: float
) -> dict[str, Any]:
    old = next((row for row in before["workers"] if row["name"] == worker["name"]), None)
    busy_ns = worker["regimes_ns"]["busy"] - (old["regimes_ns"]["busy"] if old else 0)
    gaps_ns = worker["gaps"]["sum_ns"] - (old["gaps"]["sum_ns"] if old else 0)
    mine = [row for row in now["modules"] if row["worker"] == worker["name"]]
    polled = [row for row in now["inputs"] if _polls(row["module"], worker["name"], now)]
    return {
        "worker": worker["name"],
        "core": worker["core"],
        "load": busy_ns / 1e9 / seconds,
        "held_up": gaps_ns / 1e9 / seconds,
        "runs_per_s": (worker["runs"] - (old["runs"] if old else 0)) / seconds,
        "modules": len(mine),
        "inputs": [row["module"] for row in polled],
        "poll_pkts": [row.get("poll_pkts") for row in polled],
    }


def _polls(module: str, worker: str, now: dict[str, Any]) -> bool:
    """Whether the worker polls the module; a queue does not count, as it is listed at its
    filler."""
    row = next((row for row in now["modules"] if row["name"] == module), None)
    return row is not None and row["worker"] == worker and row["kind"] != "queue"


def _polled(name: str, poll_pkts: int | None) -> str:
    """An input, with the most packets of a poll."""
    return name if poll_pkts is None else f"{name} ({poll_pkts})"


def render_cores(data: dict[str, Any]) -> RenderableType:
    """Two tables: workers, and the rings between them."""
    cores = plain_table("<worker", "core", "load", "held up", "runs/s", "modules", "<polls")
    for row in data["cores"]:
        polled = [_polled(*each) for each in zip(row["inputs"], row["poll_pkts"], strict=True)]
        rings_here = [r for r in data["rings"] if r["to"] == row["worker"]]
        polled += [_polled(ring["ring"], ring["poll_pkts"]) for ring in rings_here]
        cores.add_row(
            row["worker"], str(row["core"]) if row["core"] >= 0 else "shared",
            f"{row['load']:.0%}", f"{row['held_up']:.1%}", f"{row['runs_per_s']:.0f}",
            str(row["modules"]), ", ".join(polled),
        )  # fmt: skip
    parts: list[RenderableType] = [cores]
    if data["rings"]:
        rings = plain_table(
            "<ring", "<from", "<to", "handed over", "waiting", "mean fill", "may hold", "lost"
        )
        for row in data["rings"]:
            credit = row["credit_pkts"]
            rings.add_row(
                row["ring"], row["from"], row["to"], short_rate(row["rate_pps"]),
                str(row["waiting_pkts"]), f"{row['fill_mean_pkts']:.1f}",
                str(credit) if credit is not None else "-", str(row["lost_pkts"]),
            )  # fmt: skip
        parts += [Text(""), rings]
    return Group(*parts)
