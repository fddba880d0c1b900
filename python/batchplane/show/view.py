# SPDX-License-Identifier: BSD-3-Clause
"""view.py - the live view: pure functions that turn rates into rich text."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..base.units import short_count, short_duration, short_rate, three_digits
from .egress import egress_blocks, schedulers_of
from .rates import CAUSES, PERCENTILES, Rates, Snapshot, compute_rates

_MAX_DROP_ROWS = 6


def facts_line(hello: dict[str, Any]) -> str:
    """One line with the lookup path, memory and cores in use."""
    facts = hello.get("facts", {})
    workers = ", ".join(
        f"{worker['name']} on core {worker['core']}" for worker in facts.get("workers", [])
    )
    parts = [
        f"lookup {facts['lookup']}" if facts.get("lookup") else "",
        f"memory: {facts['memory']}" if facts.get("memory") else "",
        workers,
        f"generator on core {facts['generator_core']}"
        if facts.get("generator_core") is not None
        else "",
        str(facts.get("cpu", "")),
    ]
    return " | ".join(part for part in parts if part)


def render_live(
    before: Snapshot | None,
    now: Snapshot,
    hello: dict[str, Any],
    elapsed_s: float,
    duration_s: float | None = None,
    max_rows: int = 60,
) -> RenderableType:
    """The whole live view; `max_rows` is the height of the terminal."""
    rates = compute_rates(before, now)
    parts: list[RenderableType] = [_title(hello, elapsed_s, duration_s), _totals(rates)]
    tables = [
        table for table in (_drop_table(rates), _buffer_table(rates), flow_table(rates)) if table
    ]
    egress = egress_blocks(schedulers_of(before or now, now))
    tables_of = [*tables, *(block for block in egress if isinstance(block, Table))]
    used = 3 + sum(table.row_count + 3 for table in tables_of)
    parts.append(module_table(rates, max(max_rows - used - 4, 5)))
    parts += [part for table in reversed(tables) for part in (Text(""), table)]
    return Group(*parts, *egress)


def plain_line(before: Snapshot | None, now: Snapshot, elapsed_s: float) -> str:
    """The live view in one line, for files and pipes."""
    rates = compute_rates(before, now)
    worst = {
        p: max((row.percentiles_ns[p] or 0 for row in rates.flows), default=0)
        for p in ("p50", "p99")
    }
    busiest = max((worker.get("busy_ratio") or 0 for worker in rates.workers), default=0)
    parts = [
        f"t={elapsed_s:.0f}s",
        f"in={short_rate(rates.in_pps)}",
        f"out={short_rate(rates.out_pps)}",
        f"dropped={short_rate(rates.dropped_pps)}",
        f"held={rates.held_pkts}",
        f"busy={busiest:.0%}",
    ]
    parts += [f"{p}={short_duration(delay_ns)}" for p, delay_ns in worst.items() if delay_ns]
    return "  ".join(parts)


def _title(hello: dict[str, Any], elapsed_s: float, duration_s: float | None) -> Text:
    clock = f"{elapsed_s:.0f} s" if duration_s is None else f"{elapsed_s:.0f} of {duration_s:g} s"
    pipeline, name = hello.get("pipeline", ""), hello.get("name", "")
    shown = pipeline if pipeline == name else f"{pipeline} ({name})"
    return Text.assemble((shown, "bold"), "  ", (clock, "cyan"))


def _totals(rates: Rates) -> Text:
    text = Text.assemble(
        "in ",
        (short_rate(rates.in_pps), "bold green"),
        "   out ",
        (short_rate(rates.out_pps), "bold green"),
        "   dropped ",
        (short_rate(rates.dropped_pps), "bold red" if rates.dropped_pps else "dim"),
        f"   held {rates.held_pkts}",
    )
    for worker in rates.workers:
        busy = worker.get("busy_ratio") or 0
        text.append(f"   {worker['name']} ")
        text.append(f"{busy:.0%} busy", "yellow" if busy > 0.95 else "")
    for row in rates.generators:
        if row.get("refused_pps"):
            text.append(f"   {row['name']} refused ")
            text.append(short_rate(row["refused_pps"]), "yellow")
    if not rates.is_exact:
        text.append("   packet counts do not add up", "bold red")
    return text


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(
            column,
            justify="right" if i and not column.startswith(("kind", "reason", "what")) else "left",
            no_wrap=True,
        )
    return table


def _named(name: str, count: int) -> str:
    return f"{name} x{count}" if count > 1 else name


def module_table(rates: Rates, max_rows: int) -> Table:
    table = _table("module", "kind", "rate", "batch", "ns/pkt", "core", "dropped")
    rows = rates.modules
    if len(rows) > max_rows:
        busiest = sorted(rows, key=lambda row: -(row.load_ratio or 0))[:max_rows]
        rows = [row for row in rows if row in busiest]
    for row in rows:
        table.add_row(
            _named(row.name, row.count),
            row.kind,
            short_rate(row.rate_pps),
            "-" if row.batch_mean_pkts is None else f"{row.batch_mean_pkts:.1f}",
            "-" if row.ns_per_pkt is None else three_digits(row.ns_per_pkt),
            "-" if row.load_ratio is None else f"{row.load_ratio:.0%}",
            Text(short_rate(row.dropped_pps), "red") if row.dropped_pps else "",
        )
    hidden = len(rates.modules) - len(rows)
    if hidden:
        table.add_row(Text(f"and {hidden} more", "dim"), *[""] * 6)
    return table


def flow_table(rates: Rates) -> Table | None:
    if not rates.flows:
        return None
    table = _table("flow", "rate", "SLO", "mean", *PERCENTILES, "max", "late")
    for row in rates.flows[:12]:
        late = "-" if row.late_ratio is None else f"{row.late_ratio:.2%}"
        table.add_row(
            _named(row.name, row.count),
            short_rate(row.rate_pps),
            short_duration(row.delay_slo_ns),
            short_duration(row.delay_mean_ns),
            *[short_duration(row.percentiles_ns[p]) for p in PERCENTILES],
            short_duration(row.delay_max_ns),
            Text(late, "red") if row.late_ratio else late,
        )
    return table


def _buffer_table(rates: Rates) -> Table | None:
    if not rates.buffers:
        return None
    table = _table(
        "buffer",
        "trigger",
        "age limit",
        "held",
        "wait",
        *[f"{cause}/s" for cause in CAUSES],
        "late",
    )
    for row in rates.buffers[:12]:
        table.add_row(
            _named(row.name, row.count),
            row.trigger_pkts,
            short_duration(row.age_limit_ns),
            str(row.held_pkts),
            short_duration(row.wait_mean_ns),
            *[short_count(row.firings[cause]) for cause in CAUSES],
            Text(str(row.late_releases), "red") if row.late_releases else "0",
        )
    return table


def _drop_table(rates: Rates) -> Table | None:
    if not rates.drops:
        return None
    table = _table("dropped by", "reason", "rate", "packets", "meaning")
    table.columns[-1].no_wrap = False
    for row in rates.drops[:_MAX_DROP_ROWS]:
        table.add_row(
            _named(row.name, row.count),
            Text(row.reason, "red"),
            short_rate(row.rate_pps),
            short_count(row.pkts),
            f"{row.meaning}; {row.remedy}" if row.remedy else row.meaning,
        )
    return table
