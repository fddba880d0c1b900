# SPDX-License-Identifier: BSD-3-Clause
"""sizes.py - `pythia_small_packets`: the cost of small packets, and the gain from more devices."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...placement.plant import App, Load, capacity_pps, standins
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (64, 128, 256, 512, 1024, 1500)
SETS = {
    "one of each": ("cpu", "igpu", "dgpu"),
    "two of each": ("cpu", "cpu2", "igpu", "igpu2", "dgpu", "dgpu2"),
}
APPS = ("aes", "dpi")


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """The most that each set of devices serves in time, by packet size."""
    yield []
    rows = []
    for size in SIZES[::3] if setup.is_quick else SIZES:
        for name, devices in SETS.items():
            load = Load([App(app, 1.0, size) for app in APPS], 1, devices=devices)
            pps = capacity_pps(load)
            rows.append(
                {"pkt_bytes": size, "set": name, "mpps": pps / 1e6, "gbps": pps * size * 8 / 1e9}
            )
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def claims(rows: list[Row]) -> list[Verdict]:
    """Small packets are slow on this hardware, and more hardware makes up for it."""
    one = {row["pkt_bytes"]: row for row in rows if row["set"] == "one of each"}
    two = {row["pkt_bytes"]: row for row in rows if row["set"] == "two of each"}
    least, most = min(one), max(one)
    return [
        at_most(f"bits a second at {least} bytes, of those at {most}",
                {"one of each": one[least]["gbps"] / one[most]["gbps"]}, 0.5, percent),
        at_least("what two of each device serve, over one of each",
                 {f"{k} B": two[k]["mpps"] / one[k]["mpps"] for k in one}, 1.8, times),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Gbit/s by packet size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    figure.suptitle(f"AES and DPI, all devices, 5 ms ({setup.label}; stand-ins)", fontsize=10)
    axis = figure.add_subplot()
    for colour, name in zip(COLOURS, SETS, strict=False):
        mine = [row for row in rows if row["set"] == name]
        x, y = [row["pkt_bytes"] for row in mine], [row["gbps"] for row in mine]
        axis.plot(x, y, "o-", color=colour, label=name)
    axis.set_xlabel("bytes of a packet")
    axis.set_ylabel("Gbit/s served in time")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8)
    return figure


COLUMNS = (
    ("pkt_bytes", "bytes", shown),
    ("set", "devices", shown),
    ("mpps", "Mpps", lambda v: f"{v:.2f}"),
    ("gbps", "Gbit/s", lambda v: f"{v:.2f}"),
)

EXPERIMENT = Experiment(
    "pythia_small_packets", "Pythia: small packets, and scaling up", plan, "pythia_small_packets",
    (), f"devices are stand-ins, {standins()['origin']}.",
)  # fmt: skip
