# SPDX-License-Identifier: BSD-3-Clause
"""device_report.py - measured devices as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ..base.plain_table import plain_table
from ..costs.batch_law import BatchLaw
from ..costs.devices import INLINE, MOST_FACTOR

_GOOD_ERROR = 0.1
_MOST_BESIDE = 12


def render_devices(document: Mapping[str, Any], out: Console) -> None:
    """Devices, laws with their errors, and the largest slow-downs."""
    out.print(Text(f"{document['cpu']}, {document['date']}", "dim"))
    for row in document["devices"]:
        what = ": ".join(str(row[k]) for k in ("platform", "device") if row.get(k))
        driver = f", driver {row['driver']}" if row.get("driver") else ""
        watts = row.get("modelled")
        power = (
            f"; {watts['idle_w']:g} to {watts['active_w']:g} W, declared: modelled" if watts else ""
        )
        out.print(f"{row['name']}: {what or _WORDS[row['kind']]}{driver}{power}", soft_wrap=True)
        measured = row.get("measured")
        if measured:
            active = "".join(f", {w:.0f} W with {m}" for m, w in measured["active_w"].items())
            out.print(f"  measured: {measured['idle_w']:.0f} W idle{active}", soft_wrap=True)
    for what, key in (("OpenCL", "without_opencl"), ("CUDA", "without_cuda")):
        if document.get(key):
            out.print(f"no {what}: {document[key]}", soft_wrap=True)
    table = plain_table(
        "<module", "<on", "ns/batch", "ns/pkt", "ns/byte", "ns/length", "256 of 576 bytes",
        "median off", "p95 off", "worker ns/pkt",
    )  # fmt: skip
    for law in document["laws"]:
        batch_ns = BatchLaw.given(law).at(256, 576)
        fed_ns = BatchLaw.given(law["feed"]).at(256, 576) / 256
        table.add_row(
            Text(str(law["module"])), Text(str(law["on"])), f"{law['batch_ns']:.0f}",
            f"{law['pkt_ns']:.1f}", f"{law['byte_ns']:.3f}", f"{law.get('length_ns', 0):.1f}",
            f"{batch_ns / 256:.0f} ns/pkt",
            _error(law["median_error"]), _error(law["p95_error"]), f"{fed_ns:.0f}",
        )  # fmt: skip
    out.print(table)
    _render_crossovers(document["points"], out)
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


def _render_crossovers(points: Sequence[Mapping[str, Any]], out: Console) -> None:
    """The batch size from which a device with its own memory is faster than the worker."""
    pkt_ns: dict[tuple[str, str, int], dict[int, float]] = {}
    for p in points:
        place = pkt_ns.setdefault((p["module"], p["on"], p["length"]), {})
        place[p["batch_pkts"]] = p["wall_ns"] / p["batch_pkts"]
    lengths = sorted({p["length"] for p in points})
    shown = sorted({lengths[0], lengths[len(lengths) // 2], lengths[-1]})
    places = dict.fromkeys((p["module"], p["on"]) for p in points if p["on"] not in _WORDS)
    if not places:
        return
    out.print(Text("\nfrom this batch on it carries more than the worker, and how much", "bold"))
    table = plain_table("<module", "<on", *(f"{length} bytes" for length in shown))
    for module, on in places:
        cells = []
        for length in shown:
            own = pkt_ns.get((module, INLINE, length), {})
            gains = {
                n: own[n] / ns
                for n, ns in sorted(pkt_ns.get((module, on, length), {}).items())
                if n in own
            }
            fewer = [n for n, gain in gains.items() if gain <= 1]
            least = next((n for n in gains if n > max(fewer, default=0)), None)
            most = max(gains.values(), default=0.0)
            cells.append(Text("-" if least is None else f"{least} pkts, up to {most:.1f}x"))
        table.add_row(Text(module), Text(on), *cells)
    out.print(table)


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
