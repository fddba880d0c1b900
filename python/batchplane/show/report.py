# SPDX-License-Identifier: BSD-3-Clause
"""report.py - the final report of a run, and traces of single packets."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.units import short_count, short_duration, short_rate, three_digits
from .control import slo_lines
from .devices import render_devices, stages_of
from .egress import egress_blocks, schedulers_of
from .rates import Rates, Snapshot, compute_rates
from .view import flow_table, module_table

MEASURED = "measured"


def render_report(
    first: Snapshot,
    last: Snapshot,
    hello: dict[str, Any],
    report: dict[str, Any],
    max_modules: int = 40,
) -> RenderableType:
    """What happened between two snapshots, and the daemon's final packet balance."""
    rates = compute_rates(first, last)
    parts: list[RenderableType] = [Text(""), _headline(rates, hello)]
    parts += [_balance_line(report.get("balance") or last["runtime"]["balance"]), Text("")]
    parts.append(module_table(rates, max_modules))
    flows = flow_table(rates)
    if flows is not None:
        parts += [Text(""), flows]
    if stages_of(last.get("tables", [])):
        parts += [Text(""), render_devices(last["tables"])]
    parts += egress_blocks(schedulers_of(first, last))
    parts += slo_lines(report)
    parts += _drop_lines(rates) + _refused_lines(first, last)
    gaps = [
        (worker["name"], worker["gaps"])
        for worker in rates.workers
        if worker.get("gaps", {}).get("count")
    ]
    for name, gap in gaps:
        parts.append(
            Text(
                f"\n{name} was held up {gap['count']} times by the machine, for up to "
                f"{short_duration(gap['max_ns'])}: delays include this time",
                "dim",
            )
        )
    return Group(*parts)


def _refused_lines(first: Snapshot, last: Snapshot) -> list[RenderableType]:
    """Packets that a full ring refused from generators: they never came in, so no balance has
    them."""
    before = {str(row["name"]): row for row in first["generators"]}
    lines: list[RenderableType] = []
    for row in last["generators"]:
        old = before.get(str(row["name"]), {})
        refused, sent = (
            int(row.get(k, 0)) - int(old.get(k, 0)) for k in ("refused_pkts", "sent_pkts")
        )
        if refused <= 0:
            continue
        lines.append(
            Text(
                f"\n{row['name']}: {refused} of {refused + sent} packets were lost (ring full)",
                "yellow",
            )
        )
    return lines


def report_json(
    first: Snapshot, last: Snapshot, hello: dict[str, Any], report: dict[str, Any]
) -> dict[str, Any]:
    """The report for programs."""
    rates = compute_rates(first, last)
    return {
        "label": label_of(hello),
        "hello": hello,
        "interval_s": rates.interval_s,
        "in_pps": rates.in_pps,
        "out_pps": rates.out_pps,
        "dropped_pps": rates.dropped_pps,
        "ns_per_pkt": ns_per_pkt(rates),
        "snapshot": last,
        "report": report,
    }


def ns_per_pkt(rates: Rates) -> float | None:
    """Busy worker time per packet that came in."""
    busy = sum(worker.get("busy_ratio") or 0 for worker in rates.workers)
    return busy / rates.in_pps * 1e9 if rates.in_pps > 0 and busy > 0 else None


def label_of(hello: dict[str, Any]) -> str:
    """`measured` or `simulated`, so that no figure has the wrong label."""
    return str(hello.get("label", MEASURED))


def _interval(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else short_duration(seconds * 1e9)


def _headline(rates: Rates, hello: dict[str, Any]) -> Text:
    busy_ns = ns_per_pkt(rates)
    text = Text.assemble(
        (str(hello.get("pipeline", "")), "bold"),
        f", {label_of(hello)}: {_interval(rates.interval_s)}, ",
        (short_rate(rates.in_pps), "bold green"),
        " in, ",
        (short_rate(rates.out_pps), "bold green"),
        " out",
    )
    if busy_ns is not None:
        text.append(f", {three_digits(busy_ns)} ns of worker time per packet")
    return text


def _balance_line(balance: dict[str, Any]) -> Text:
    came = sum(balance.get(f"{way}_pkts", 0) for way in ("in", "originated", "ahead"))
    ways = ("sent", "dropped", "held")
    text = Text(f"{came} packets = {' + '.join(_share(balance, way) for way in ways)}")
    if balance.get("in_flight_pkts"):
        text.append(f" + {balance['in_flight_pkts']} in flight")
    exact = balance.get("is_exact", True)
    text.append(
        "  (all packets accounted for)" if exact else "  (counts do not add up)",
        "green" if exact else "red",
    )
    return text


def _share(balance: dict[str, Any], way: str) -> str:
    return f"{balance.get(f'{way}_pkts', 0)} {way}"


def _drop_lines(rates: Rates) -> list[RenderableType]:
    lines: list[RenderableType] = [Text("")] if rates.drops else []
    for row in rates.drops[:8]:
        text = Text.assemble(
            (f"{short_count(row.pkts)} dropped", "red"), f" by {row.name}: {row.reason}"
        )
        text.append(f" - {row.meaning}" + (f"; {row.remedy}" if row.remedy else ""), "dim")
        lines.append(text)
    return lines


def render_trace(packets: list[dict[str, Any]]) -> RenderableType:
    """The path, waiting times and end of each traced packet."""
    if not packets:
        return Text("no packet seen. Is there traffic, and does the filter match it?", "yellow")
    lines: list[RenderableType] = []
    for packet in packets:
        lines.append(
            Text.assemble((f"packet {packet['id']}", "bold"), f"  {packet.get('summary', '')}")
        )
        events = packet.get("events", [])
        start_ns = events[0]["at_ns"] if events else 0
        for event in events:
            at = f"+{short_duration(event['at_ns'] - start_ns)}"
            lines.append(
                Text.assemble(
                    f"  {at:>10}  ",
                    (f"{event.get('module', ''):<20}", "cyan"),
                    f" {_event_text(event)}",
                )
            )
        lines.append(Text(""))
    return Group(*lines)


def _event_text(event: dict[str, Any]) -> str:
    what = event.get("event", "")
    batch = event.get("batch_pkts")
    within = f" in a batch of {batch}" if batch else ""
    if what == "hold":
        return "waits in the buffer"
    if what == "fire":
        return f"buffer fires{within}: {event.get('cause', '')}"
    if what == "drop":
        return f"dropped: {event.get('reason', '')}"
    if what == "egress":
        return f"leaves{within}"
    gate = event.get("gate")
    waited_ns = event.get("waited_ns")
    after = "" if waited_ns is None else f", after {short_duration(waited_ns)} in its buffer"
    return f"runs{within}{after}" + (f", leaves by gate {gate}" if gate not in (None, 0) else "")
