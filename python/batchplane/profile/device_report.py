# SPDX-License-Identifier: BSD-3-Clause
"""device_report.py - what was measured of devices, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from ..base.plain_table import plain_table
from ..costs.devices import MOST_FACTOR

_GOOD_ERROR = 0.1
_MOST_BESIDE = 12


def render_devices(document: Mapping[str, Any], out: Console) -> None:
    """Devices, laws with their errors, and who slows whom most."""
    out.print(Text(f"{document['cpu']}, {document['date']}", "dim"))
    for row in document["devices"]:
        what = ": ".join(str(row[k]) for k in ("platform", "device") if row.get(k))
        driver = f", driver {row['driver']}" if row.get("driver") else ""
        watts = row.get("modelled")
        power = (
            f"; {watts['idle_w']:g} to {watts['active_w']:g} W, declared: modelled" if watts else ""
        )
        out.print(f"{row['name']}: {what or _WORDS[row['kind']]}{driver}{power}", soft_wrap=True)
    if document.get("without_opencl"):
        out.print(f"no OpenCL: {document['without_opencl']}", soft_wrap=True)
    table = plain_table(
        "<module", "<on", "ns/batch", "ns/pkt", "ns/byte", "256 of 576 bytes", "median off",
        "p95 off", "worker ns/pkt",
    )  # fmt: skip
    for law in document["laws"]:
        batch_ns = law["batch_ns"] + 256 * (law["pkt_ns"] + 576 * law["byte_ns"])
        feed = law["feed"]
        fed_ns = feed["batch_ns"] / 256 + feed["pkt_ns"] + 576 * feed["byte_ns"]
        table.add_row(
            Text(str(law["module"])), Text(str(law["on"])), f"{law['batch_ns']:.0f}",
            f"{law['pkt_ns']:.1f}", f"{law['byte_ns']:.3f}", f"{batch_ns / 256:.0f} ns/pkt",
            _error(law["median_error"]), _error(law["p95_error"]), f"{fed_ns:.0f}",
        )  # fmt: skip
    out.print(table)
    _render_beside(document["beside"], out)
    for row in document["refused"]:
        out.print(
            Text(f"{row['module']} not on {row['on']}: {row['reason']}", "dim"), soft_wrap=True
        )


_WORDS = {"inline": "the worker itself", "cores": "a thread of its own"}


def _error(ratio: float | None) -> Text:
    if ratio is None:
        return Text("-")
    return Text(f"{ratio:.0%}", "" if ratio <= _GOOD_ERROR else "yellow")


def _render_beside(rows: list[Mapping[str, Any]], out: Console) -> None:
    if not rows:
        return
    worst = sorted(rows, key=lambda row: -float(row["factor"]))[:_MOST_BESIDE]
    out.print(Text("\na batch beside another application, times as long as alone", "bold"))
    table = plain_table("<module", "<on", "<beside", "<on", "factor")
    for row in worst:
        cells = (str(row[key]) for key in ("kind", "on", "beside", "on_other"))
        table.add_row(*(Text(cell) for cell in cells), f"{row['factor']:.2f}")
    out.print(table)
    if len(rows) > len(worst):
        out.print(Text(f"the slowest of {len(rows)}; --json has all", "dim"))
    n_beyond = sum(float(row["factor"]) > MOST_FACTOR for row in rows)
    if n_beyond:
        told = f"{n_beyond} above {MOST_FACTOR:g} are not used: others held this machine up"
        out.print(Text(told, "yellow"))
