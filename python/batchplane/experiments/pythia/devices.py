# SPDX-License-Identifier: BSD-3-Clause
"""devices.py - `pythia_devices`: the performance of each device by application, batch and size."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...costs.batch_law import BatchLaw
from ...placement.plant import standins
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCHES = tuple(2**k for k in range(5, 15))
SIZES = (64, 512, 1500)


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Every application on every device, at full rate."""
    yield []
    data = standins()
    rows = [
        _row(data, app, device, size, batch)
        for app in data["laws"]
        for device in data["devices"]
        for size in SIZES
        for batch in BATCHES
        if batch <= data["laws"][app][device].get("max_batch_pkts", BATCHES[-1])
    ]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(data: dict[str, Any], app: str, device: str, size: int, batch: int) -> Row:
    law = data["laws"][app][device]
    batch_ns = BatchLaw.given(law).at(batch, size)
    watts = data["devices"][device]["active_w"]
    gbps = batch * size * 8 / batch_ns
    return {
        "app": app, "device": device, "pkt_bytes": size, "batch_pkts": batch,
        "mpps": batch / batch_ns * 1e3, "gbps": gbps, "batch_us": batch_ns / 1e3,
        "nj_per_bit": watts / gbps,
    }  # fmt: skip


def _best(rows: list[Row], key: str, is_least: bool = False) -> dict[str, str]:
    """By application: the best device with large packets and its best batch."""
    found = {}
    for app in dict.fromkeys(row["app"] for row in rows):
        mine = [row for row in rows if row["app"] == app and row["pkt_bytes"] == SIZES[-1]]
        pick = (
            min(mine, key=lambda row: row[key]) if is_least else max(mine, key=lambda row: row[key])
        )
        found[app] = pick["device"]
    return found


def _crossovers(rows: list[Row]) -> dict[str, float]:
    """By application: the least batch with which the large GPU beats the CPU's best, 512 bytes."""
    found = {}
    for app in dict.fromkeys(row["app"] for row in rows):
        mine = [row for row in rows if row["app"] == app and row["pkt_bytes"] == SIZES[1]]
        cpu = {row["batch_pkts"]: row["gbps"] for row in mine if row["device"] == "cpu"}
        gpu = {row["batch_pkts"]: row["gbps"] for row in mine if row["device"] == "dgpu"}
        ahead = [b for b in sorted(gpu) if gpu[b] > cpu.get(b, max(cpu.values()))]
        if ahead:
            found[app] = float(ahead[0])
    return found


def claims(rows: list[Row]) -> list[Verdict]:
    """No device is best for all applications; the best one depends on the batch."""
    fastest = set(_best(rows, "gbps").values())
    thriftiest = set(_best(rows, "nj_per_bit", True).values())
    crossovers = _crossovers(rows)
    return [
        at_least("devices that are fastest for some application", {"1500 B": len(fastest)}, 2,
                 lambda v: f"{v:.0f}"),
        at_least("devices that need the least energy a bit for some application",
                 {"1500 B": len(thriftiest)}, 2, lambda v: f"{v:.0f}"),
        at_least("applications with a batch from which the large GPU overtakes the CPU",
                 {"512 B": len(crossovers)}, 1, lambda v: f"{v:.0f}"),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Gbit/s by batch, one panel per application."""
    from matplotlib.figure import Figure

    apps = list(dict.fromkeys(row["app"] for row in rows))
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    figure.suptitle(
        f"devices by batch, packets of 512 bytes ({setup.label}; stand-ins)", fontsize=10
    )
    panels = figure.subplots(1, len(apps), sharey=True)
    for panel, app in zip(panels, apps, strict=True):
        devices = dict.fromkeys(row["device"] for row in rows)
        for colour, device in zip(COLOURS, devices, strict=False):
            mine = [
                row for row in rows
                if (row["app"], row["device"], row["pkt_bytes"]) == (app, device, SIZES[1])
            ]  # fmt: skip
            x, y = [row["batch_pkts"] for row in mine], [row["gbps"] for row in mine]
            panel.plot(x, y, "o-", color=colour, markersize=3, linewidth=1.2, label=device)
        panel.set_xscale("log", base=2)
        panel.set_title(app, fontsize=9)
        panel.set_xlabel("packets of a batch")
    panels[0].set_ylabel("Gbit/s")
    panels[0].legend(fontsize=8)
    return figure


COLUMNS = (
    ("app", "application", shown),
    ("device", "device", shown),
    ("pkt_bytes", "bytes", shown),
    ("batch_pkts", "batch", shown),
    ("mpps", "Mpps", lambda v: f"{v:.2f}"),
    ("gbps", "Gbit/s", lambda v: f"{v:.2f}"),
    ("batch_us", "us a batch", lambda v: f"{v:.0f}"),
    ("nj_per_bit", "nJ a bit", lambda v: f"{v:.2f}"),
)

EXPERIMENT = Experiment(
    "pythia_devices", "Pythia: rate, delay and energy by device, batch and packet size", plan,
    "pythia_devices", (), f"devices are stand-ins, {standins()['origin']}.",
)  # fmt: skip
