# SPDX-License-Identifier: BSD-3-Clause
"""device_text.py - the capacity of each set of devices, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_rate
from ..costs.devices import SIMULATED
from .devices import DeviceCase, SetRow, offered_pps

_MOST_ROWS = 63


@dataclass
class DeviceReport:
    """Everything that `batchplane plan --devices` reports."""

    name: str
    case: DeviceCase
    rows: list[SetRow]
    bought: list[dict[str, Any]]
    origin: str
    warnings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "label": "planned", "watts_label": "modelled", "pipeline": self.name,
            "laws_from": self.origin, "offered_pps": offered_pps(self.case),
            "devices": [vars(device) for device in self.case.devices],
            "apps": [vars(app) for app in self.case.apps],
            "laws": [
                {
                    "module": app, "on": on, **law.law.as_json(), "feed": law.feed.as_json(),
                    "origin": law.origin,
                }
                for (app, on), law in self.case.laws.items()
            ],
            "sets": [row.as_json() for row in self.rows],
            "bought": self.bought, "warnings": self.warnings,
        }  # fmt: skip


def render_report(report: DeviceReport) -> RenderableType:
    """The heading, the table of sets, the gain of each simulated card, and the laws."""
    case = report.case
    told: list[RenderableType] = [
        Text(
            f"{report.name}, planned on devices: {short_rate(offered_pps(case))} offered to "
            f"{len(case.apps)} module{'s' if len(case.apps) != 1 else ''}",
            "bold",
        ),
        Text(f"laws: {report.origin}; watts: declared, modelled", "dim"),
        Text(""),
        _sets(report),
    ]
    told += [Text(""), *_bought(report)]
    told += [Text(""), _laws(case), Text(_FEEDING, "dim")]
    return Group(*told)


_FEEDING = (
    "worker: what the core that brings the packets spends on modules that run there and on handing "
    "packets over and back; all else that it does comes on top (plan without --devices)."
)


def _label(case: DeviceCase, names: Sequence[str]) -> str:
    simulated = {device.name for device in case.devices if device.kind == SIMULATED}
    return " + ".join(name + " (simulated)" * (name in simulated) for name in names)


def _sets(report: DeviceReport) -> RenderableType:
    table = plain_table(
        "<devices", "carries", "<placed for", "served", "worst delay / SLO", "watts", "worker"
    )
    before: tuple[str, ...] = ()
    for row in report.rows[: 3 * _MOST_ROWS]:
        is_new = row.devices != before
        before = row.devices
        carries = short_rate(row.carries_pps) + (" (worker full)" if row.is_worker_bound else "")
        table.add_row(
            Text(_label(report.case, row.devices) if is_new else ""),
            Text(carries if is_new else ""),
            Text(row.policy),
            Text(f"{row.served:.0%}", "" if row.served >= 0.9999 else "yellow"),
            f"{row.worst_delay:.0%}",
            f"{row.watts:.1f}",
            Text(f"{row.worker_share:.0%}", "" if row.worker_share <= 0.9 else "red"),
        )
    return table


def _bought(report: DeviceReport) -> list[RenderableType]:
    cards = [device for device in report.case.devices if device.kind == SIMULATED]
    if not cards:
        return [
            Text(
                "no card is simulated: declare a device of kind simulated, with laws, to see what "
                "one would buy",
                "dim",
            )
        ]
    lines: list[RenderableType] = []
    for row in report.bought:
        lines.append(Text(f"{row['device']} (simulated), placed for {row['policy']}: {_gain(row)}"))
    return lines


def _gain(row: Mapping[str, Any]) -> str:
    without = row["without"]
    if without is None:
        return f"nothing else can run these modules; it carries {short_rate(row['carries_pps'])}"
    watts = row["watts"] - without["watts"]
    served = ""
    if abs(row["served"] - without["served"]) > 1e-3:
        served = f", serves {row['served']:.0%} instead of {without['served']:.0%}"
    return (
        f"carries {short_rate(row['carries_pps'])} instead of {short_rate(without['carries_pps'])}"
        f"{served}, {watts:+.1f} W at the offered rate"
    )


def _laws(case: DeviceCase) -> RenderableType:
    table = plain_table(
        "<module",
        "<on",
        "arriving",
        "ns/batch",
        "ns/pkt",
        "ns/byte",
        "ns/length",
        "worker ns/pkt",
        "<from",
    )
    for app in case.apps:
        for device in case.devices:
            known = case.laws.get((app.name, device.name))
            if known is None:
                continue
            fed = known.feed.at(256, app.pkt_bytes) / 256
            table.add_row(
                Text(app.name), Text(device.name),
                short_rate(app.rate_pps), f"{known.law.batch_ns:.0f}", f"{known.law.pkt_ns:.1f}",
                f"{known.law.byte_ns:.3f}", f"{known.law.length_ns:.1f}", f"{fed:.0f}",
                Text(known.origin),
            )  # fmt: skip
    return table
