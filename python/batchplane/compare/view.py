# SPDX-License-Identifier: BSD-3-Clause
"""view.py - the comparison of controllers on the screen: bars while it runs, a table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_duration, short_rate, three_digits
from .rows import Row

_PARTS = " ▏▎▍▌▋▊▉█"
_SLO_AT = 0.7  # of the bar: packets beyond it are late
_MIN_BAR, _MAX_BAR = 12, 32
_PLAIN_WIDTH = 90
_MAX_HELD_UP = 0.2  # of the time, by the machine: above it, figures mean little


@dataclass(frozen=True)
class Stage:
    """The progress of the comparison."""

    pipeline: str
    controllers: tuple[str, ...]
    running: int  # number of the controller whose turn it is
    elapsed_s: float
    length_s: float
    is_counted: bool  # else the controller is still settling


def live_view(stage: Stage, rows: Sequence[Row], width: int = _PLAIN_WIDTH) -> RenderableType:
    """All results so far, of the first of the controllers or of all."""
    bar = min(max((width - 50) // 2, _MIN_BAR), _MAX_BAR)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head, justify in (
        ("", "left"), ("rate", "left"), ("", "right"), ("p95 of the worst flow", "left"),
        ("", "right"), ("batch", "right"),
    ):  # fmt: skip
        table.add_column(head, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    max_pps = max((row.rate_pps for row in rows), default=1.0) or 1.0
    for number, controller in enumerate(stage.controllers):
        if number >= len(rows):
            table.add_row(Text(f"  {controller}", "dim"))
            continue
        row = rows[number]
        is_now = number == stage.running
        shows_delay = row.of_slo is not None and (stage.is_counted or not is_now)
        table.add_row(
            Text(f"{'>' if is_now else ' '} {controller}", "bold" if is_now else ""),
            _bar(row.rate_pps / max_pps, bar, "cyan"),
            Text(short_rate(row.rate_pps), "bold"),
            _delay_bar(row.of_slo or 0.0, bar) if shows_delay else Text("settling", "dim"),
            _delay_text(row) if shows_delay else Text(""),
            "-" if row.batch_mean_pkts is None else three_digits(row.batch_mean_pkts),
        )
    return Group(_title(stage, rows), Text(""), table, Text(""), _legend(rows[stage.running]))


def _title(stage: Stage, rows: Sequence[Row]) -> Text:
    text = Text.assemble(
        (stage.pipeline, "bold"),
        "  ",
        (f"{min(stage.elapsed_s, stage.length_s):.0f} of {stage.length_s:.0f} s", "cyan"),
    )
    if rows and rows[-1].slo_ns:
        promise = f"  SLO of each of {rows[-1].n_flows} flows: "
        text.append(promise).append(short_duration(rows[-1].slo_ns), "bold")
    return text


def _legend(row: Row) -> Text:
    text = Text(
        "the mark in each bar is the SLO; a buffer in front of each module collects packets", "dim"
    )
    if row.is_disturbed:
        share = f"\nthe machine held the worker up for {row.held_up_ratio:.0%} of the time"
        text.append(f"{share}; this time is excluded", "yellow")
    return text


def _bar(share: float, width: int, style: str) -> Text:
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    text = "█" * full + (_PARTS[rest] if rest else "")
    return Text(text.ljust(width), style)


def _delay_bar(of_slo: float, width: int) -> Text:
    mark = round(width * _SLO_AT)
    text = _bar(of_slo * mark / width, width, _style(of_slo))
    plain = text.plain
    if plain[mark] == " ":
        text = Text(plain[:mark] + "│" + plain[mark + 1 :], _style(of_slo))
    else:
        text.stylize("reverse", mark, mark + 1)
    return text


def _style(of_slo: float) -> str:
    return "green" if of_slo <= 1.0 else "red"


def _delay_text(row: Row) -> Text:
    return Text(short_duration(row.p95_ns), _style(row.of_slo or 0.0))


def plain_line(row: Row, elapsed_s: float) -> str:
    """One line about the running controller."""
    parts = [f"{row.controller:<10} t={elapsed_s:.0f}s", f"rate={short_rate(row.rate_pps)}"]
    if row.batch_mean_pkts is not None:
        parts.append(f"batch={three_digits(row.batch_mean_pkts)}")
    if row.p95_ns is not None:
        parts.append(f"p95={short_duration(row.p95_ns)} of {short_duration(row.slo_ns)}")
    return "  ".join(parts)


def final_table(rows: Sequence[Row]) -> RenderableType:
    """A line for each controller."""
    base = rows[0]
    table = plain_table(
        "<controller", "rate", f"over {base.controller}", "batch", "p50", "p95", "SLO",
        "<SLO met", "late", "violated",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            Text(row.controller, "bold"),
            Text(short_rate(row.rate_pps), "bold"),
            "-" if row is base else _gain(row, base),
            "-" if row.batch_mean_pkts is None else three_digits(row.batch_mean_pkts),
            short_duration(row.p50_ns),
            Text(short_duration(row.p95_ns), "" if row.of_slo is None else _style(row.of_slo)),
            short_duration(row.slo_ns),
            _promise(row),
            "-" if row.late_ratio is None else f"{row.late_ratio:.2%}",
            f"{row.violated_periods} of {row.periods}" if row.slo_ns else "-",
        )
    return Group(Text(""), table, Text(""))


def _gain(row: Row, base: Row) -> str:
    ratios = row.ratios_to(base)
    gain = f"{row.ratio_to(base) - 1:+.0%}"
    return gain if len(ratios) == 1 else f"{gain} [{min(ratios) - 1:+.0%}, {max(ratios) - 1:+.0%}]"


def _promise(row: Row) -> Text:
    if row.of_slo is None:
        return Text("none", "dim")
    if row.is_kept:
        return Text("yes", "green")
    return Text(f"{row.of_slo - 1:.0%} over", "red")


def closing_lines(rows: Sequence[Row], balance: dict[str, Any]) -> list[Text]:
    """The conclusions from the measured rows."""
    lines = [_conclusion(rows)] if len(rows) > 1 else []
    if any(row.is_disturbed for row in rows):
        lines.append(_disturbance(rows))
    if n_turns := len(rows[0].turn_rates_pps):
        lines.append(
            Text(f"gains: median of {n_turns} turns [least, most]; p50, p95: median of them", "dim")
        )
    lines.append(
        Text("batch: mean packets per batch; p50, p95: flow closest to its SLO, which covers "
             "95 % of its packets; violated: control periods", "dim")
    )  # fmt: skip
    if balance.get("is_exact", False):
        lines.append(Text("all packets accounted for across controller changes", "dim"))
    else:
        lines.append(Text("packet counts do not add up", "bold red"))
    return lines


def _disturbance(rows: Sequence[Row]) -> Text:
    held_up = max(row.held_up_ratio for row in rows)
    told = (
        f"the machine held the worker up for up to {held_up:.0%} of the time. Rates exclude it; "
        "delays "
    )
    if all(row.is_undisturbed for row in rows):
        told += "are from undisturbed periods only"
    elif held_up < _MAX_HELD_UP:
        told += "include it"
    else:
        told += "include it, too much for reliable figures"
    return Text(told, "yellow")


def _conclusion(rows: Sequence[Row]) -> Text:
    base, last = rows[0], rows[-1]
    ratio = last.ratio_to(base)
    kept = {True: "meets every SLO", False: "misses its SLO", None: "runs"}[last.is_kept]
    text = Text.assemble(
        (last.controller, "bold"), f" {kept} at ",
        (f"{ratio:.2f} times the rate of {base.controller}", "bold green" if ratio > 1 else "bold"),
    )  # fmt: skip
    for row in rows[1:-1]:
        share = last.ratio_to(row)
        does = {True: "meets it too", False: "misses it", None: "runs"}[row.is_kept]
        text.append(f"; {row.controller} {does}, {last.controller} reaches {share:.0%} of its rate")
    return text
