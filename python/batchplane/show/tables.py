# SPDX-License-Identifier: BSD-3-Clause
"""tables.py - what `batchplane show` prints: exact counts since the start, as tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_duration, short_rate, three_digits
from .control import render_control, render_slo
from .cores import render_cores
from .devices import render_devices, render_placement
from .egress import render_egress
from .graph import graph_tree
from .nat import render_nat
from .rates import CAUSES, PERCENTILES, buffer_list, is_buffer_used
from .sessions import render_sessions

WHAT = (
    "runtime", "cores", "buffers", "flows", "drops", "ports", "tables", "egress", "nat", "sessions",
    "graph", "generators", "slo", "control", "devices", "placement", "all",
)  # fmt: skip


def render_show(what: str, data: Any) -> RenderableType:
    """The answer of `show` as tables."""
    if what == "all":
        parts: list[RenderableType] = []
        for name, renderer in _RENDERERS.items():
            if data.get(name) not in (None, [], {}):
                parts += [Text(name, "bold underline"), renderer(data[name]), Text("")]
        return Group(*parts)
    return _RENDERERS[what](data)


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return three_digits(value) if isinstance(value, float) else str(value)


def _inputs(rows: list[dict[str, Any]]) -> RenderableType:
    inputs = plain_table(
        "<input", "offered", "taken", "lost", "waiting", "backlog", "ring", "mean fill", "highest"
    )
    for row in rows:
        inputs.add_row(
            row["module"],
            *[
                _number(row[key])
                for key in (
                    "offered_pkts",
                    "taken_pkts",
                    "lost_pkts",
                    "waiting_pkts",
                    "backlog_pkts",
                )
            ],
            *[
                _number(row[key]) if row["ring_pkts"] else "-"
                for key in ("ring_pkts", "fill_mean_pkts", "fill_max_pkts")
            ],
        )
    return inputs


def _runtime(data: dict[str, Any]) -> RenderableType:
    balance = data["balance"]
    exact = (
        Text("balanced", "green") if balance.get("is_exact", True) else Text("not balanced", "red")
    )
    came = balance["in_pkts"] + balance.get("originated_pkts", 0)
    ahead = f" + {balance['ahead_pkts']} ahead" if balance.get("ahead_pkts") else ""
    line = Text.assemble(
        f"{came} in{ahead} = {balance['sent_pkts']} sent + {balance['dropped_pkts']} dropped + "
        f"{balance['held_pkts']} held + {balance.get('in_flight_pkts', 0)} in flight: ",
        exact,
    )
    workers = plain_table("<worker", "core", "busy", "loops", "runs", "gaps > 20 us", "longest gap")
    for row in data.get("workers", []):
        gaps = row.get("gaps", {})
        workers.add_row(
            row["name"],
            str(row["core"]),
            f"{row.get('busy_ratio') or 0:.0%}",
            _number(row.get("loops")),
            _number(row.get("runs")),
            _number(gaps.get("count")),
            short_duration(gaps.get("max_ns")),
        )
    modules = plain_table(
        "<module",
        "<kind",
        "<worker",
        "packets",
        "batches",
        "mean batch",
        "ns/pkt",
        "ns = per batch",
        "+ per packet",
        "dropped",
    )
    for row in data.get("modules", []):
        modules.add_row(
            row["name"],
            row["kind"],
            str(row.get("worker", "")),
            _number(row["pkts"]),
            _number(row["batches"]),
            *[
                _number(row.get(key))
                for key in (
                    "batch_mean_pkts",
                    "ns_per_pkt",
                    "cost_per_batch_ns",
                    "cost_per_pkt_ns",
                    "dropped_pkts",
                )
            ],
        )
    return Group(
        line, Text(""), workers, Text(""), _inputs(data.get("inputs", [])), Text(""), modules
    )


def _buffers(data: Any) -> RenderableType:
    rows = buffer_list({"buffers": data})
    used = [row for row in rows if is_buffer_used(row)]
    table = plain_table(
        "<module", "trigger", "age limit", "held", "mean arrival", *CAUSES, "mean wait", "late"
    )
    for row in used:
        causes = row.get("causes", {})
        pkts = sum(cause.get("pkts", 0) for cause in causes.values())
        wait_ns = sum(cause.get("wait_ns", 0) for cause in causes.values())
        arrived = row["arrived_pkts"] / row["arrived_batches"] if row["arrived_batches"] else None
        table.add_row(
            row["module"],
            str(row["trigger_pkts"]),
            short_duration(row.get("age_limit_ns")),
            str(row["held_pkts"]),
            _number(arrived),
            *[str(causes.get(cause, {}).get("firings", 0)) for cause in CAUSES],
            short_duration(wait_ns / pkts if pkts else None),
            str(row.get("late_releases", 0)),
        )
    parts: list[RenderableType] = [table] if used else []
    if len(used) < len(rows):
        parts.append(Text(f"{len(rows) - len(used)} unused buffers (trigger 0)", "dim"))
    units = [row for row in rows if row.get("weight")]
    if units:
        parts += [Text("") if parts else Text("scheduled units", "dim"), _units(units)]
    worst = data.get("worst_firings_per_run") if isinstance(data, dict) else None
    if worst is not None:
        parts.append(Text(f"maximum firings in one run: {worst}", "dim"))
    return Group(*parts)


def _units(rows: list[dict[str, Any]]) -> RenderableType:
    """The units of a task under explicit scheduling, with their turns."""
    table = plain_table(
        "<unit", "weight", "share", "turns", "pkts/turn", "held", "most", "queue", "pace",
        "congested",
    )  # fmt: skip
    for row in rows:
        pkts = sum(cause.get("pkts", 0) for cause in row.get("causes", {}).values())
        room = row.get("queue_pkts")
        table.add_row(
            row["module"],
            str(row["weight"]),
            f"{row['share']:.1%}",
            str(row["turns"]),
            _number(pkts / row["turns"] if row["turns"] and room else None),
            str(row["held_pkts"]) if room else "input",
            str(row["max_held_pkts"]) if room else "-",
            str(room) if room else "-",
            short_duration(row.get("pace_ns")),
            str(row["congested"]) if room else "-",
        )
    return table


def _flows(data: list[dict[str, Any]]) -> RenderableType:
    table = plain_table("<flow", "SLO", "packets", "late", "mean", *PERCENTILES, "max", "<path")
    for row in data:
        percentiles = row.get("percentiles_ns") or {}
        table.add_row(
            row["name"],
            short_duration(row.get("delay_slo_ns") or None),
            str(row["pkts"]),
            str(row.get("late_pkts", 0)),
            short_duration(row.get("delay_mean_ns")),
            *[short_duration(percentiles.get(p)) for p in PERCENTILES],
            short_duration(row.get("delay_max_ns")),
            " -> ".join(row.get("path") or []),
        )
    return table


def _drops(data: list[dict[str, Any]]) -> RenderableType:
    rows = [row for row in data if row.get("pkts") or row.get("handed_on_pkts")]
    if not rows:
        return Text("no packets dropped", "green")
    table = plain_table("<module", "<reason", "packets", "handed on", "<meaning", "<remedy")
    for row in sorted(rows, key=lambda row: -row["pkts"]):
        table.add_row(
            row["module"],
            row["reason"],
            str(row["pkts"]),
            str(row.get("handed_on_pkts") or ""),
            row.get("meaning", ""),
            row.get("remedy", ""),
        )
    return table


def _ports(data: list[dict[str, Any]]) -> RenderableType:
    counts = ("rx", "tx", "rx_missed", "rx_refused", "tx_refused")
    columns = [name.replace("_", " ") for name in counts]
    table = plain_table("<port", "<kind", "<up", "<mac", "mtu", *columns, "<facts")
    findings: list[RenderableType] = []
    for row in data:
        stats, facts = row.get("stats", {}), row.get("facts") or {}
        table.add_row(
            row["name"],
            row.get("kind", ""),
            "up" if row.get("is_up") else Text("down", "red"),
            row.get("mac") or "",
            _number(row.get("mtu_bytes")),
            *[_number(stats.get(f"{name}_pkts", 0)) for name in counts],
            ", ".join(f"{key}={value}" for key, value in facts.items() if _is_worth_a_word(value)),
        )
        for event in facts.get("events", []):
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event["at_s"]))
            findings.append(Text(f"{row['name']}: {at} {event['what']}"))
        for fact in facts.values():
            if isinstance(fact, dict) and fact.get("finding"):
                remedy = f" ({fact['remedy']})" if fact.get("remedy") else ""
                findings.append(Text(f"{row['name']}: {fact['finding']}{remedy}", "yellow"))
    return Group(table, *findings)


def _is_worth_a_word(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and value not in ("", 0, True)


# Keys that have their own views: `show devices`, `show egress`.
_SHOWN_ELSEWHERE = ("module", "kind", "stage", "status")


def _tables(data: Any) -> RenderableType:
    if not isinstance(data, list):
        return _facts(data)
    if data and "module" not in data[0]:
        return _records(data)
    table = plain_table("<module", "<kind", "<state")
    for row in data:
        state = ", ".join(
            f"{key}={_short(value)}" for key, value in row.items() if key not in _SHOWN_ELSEWHERE
        )
        table.add_row(row["module"], row.get("kind", ""), state)
    return table


def _facts(data: Any) -> RenderableType:
    if not isinstance(data, dict):
        return Text(_short(data))
    lists = {
        key: value
        for key, value in data.items()
        if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    table = plain_table("<", "<")
    table.show_header = False
    for key, value in data.items():
        if key not in lists and key not in _SHOWN_ELSEWHERE:
            table.add_row(key, _short(value))
    return Group(table, *[_records(rows) for rows in lists.values()])


def _records(rows: list[dict[str, Any]]) -> RenderableType:
    """Rows of any module's `list`, with a column for each key."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = plain_table(*[f"<{column}" for column in columns])
    for row in rows:
        table.add_row(*[_short(row.get(column, "")) for column in columns])
    return table


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        shown = ", ".join(_short(item) for item in value[:8])
        return f"[{shown}{', ...' if len(value) > 8 else ''}]"
    return _number(value) if isinstance(value, float) else str(value)


def _generators(data: list[dict[str, Any]]) -> RenderableType:
    table = plain_table("<generator", "target rate", "sent", "refused", "late")
    for row in data:
        table.add_row(
            row["name"],
            short_rate(row.get("rate_pps") or None),
            str(row.get("sent_pkts", 0)),
            str(row.get("refused_pkts", 0)),
            short_duration(row.get("late_ns")),
        )
    return table


_RENDERERS: dict[str, Callable[[Any], RenderableType]] = {
    "runtime": _runtime,
    "cores": render_cores,
    "buffers": _buffers,
    "flows": _flows,
    "drops": _drops,
    "ports": _ports,
    "tables": _tables,
    "egress": render_egress,
    "nat": render_nat,
    "sessions": render_sessions,
    "graph": graph_tree,
    "generators": _generators,
    "slo": render_slo,
    "control": render_control,
    "devices": render_devices,
    "placement": render_placement,
}
