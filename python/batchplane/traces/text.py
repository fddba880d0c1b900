# SPDX-License-Identifier: BSD-3-Clause
"""text.py - a capture's statistics and groups as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ..base.plain_table import plain_table
from ..base.units import short_count, short_rate
from .cut import Group
from .stats import TraceStats


def stats_table(stats: TraceStats) -> Table:
    """Statistics as rows of name and value."""

    def maybe(value: float | None) -> str:
        return "too few" if value is None else f"{value:.2f}"

    rows = (
        ("packets", short_count(stats.packets)),
        ("time", f"{stats.duration_s:.6g} s"),
        ("rate", f"{short_rate(stats.rate_pps)}, {stats.rate_bps / 1e9:.3g} Gbit/s"),
        ("mean size", f"{stats.size_mean_bytes:.0f} bytes"),
        ("of 64 bytes", f"{stats.size_64_share:.1%}"),
        ("of 1500 bytes and more", f"{stats.size_full_share:.1%}"),
        ("flows", short_count(stats.flows)),
        ("packets of a flow", f"{stats.flow_mean_pkts:.1f} mean, {stats.flow_median_pkts:g} "
         f"median, {short_count(stats.flow_max_pkts)} most"),
        ("packets of the top 1 % of flows", f"{stats.flow_top_share:.1%}"),
        ("tail index of flows", maybe(stats.flow_tail_index)),
        ("consecutive packets of a flow", f"{stats.burstiness:.3f} mean"),
        ("destinations", short_count(stats.destinations)),
        ("packets to the first of them", f"{stats.destination_top_share:.1%}"),
        ("Zipf's exponent of destinations", maybe(stats.zipf)),
    )  # fmt: skip
    table = plain_table("<", "<")
    for name, value in rows:
        table.add_row(name, value)
    return table


def groups_table(groups: Sequence[Group]) -> Table:
    """One row per group."""
    total = sum(group.packets for group in groups)
    table = plain_table("gate", "<prefix", "packets", "share")
    for i, group in enumerate(groups):
        table.add_row(str(i), group.prefix, str(group.packets), f"{group.packets / total:.2%}")
    return table
