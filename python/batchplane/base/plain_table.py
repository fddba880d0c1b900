# SPDX-License-Identifier: BSD-3-Clause
"""plain_table.py - the common style of all tables that commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


def plain_table(*columns: str) -> Table:
    """A table without rules; columns that begin with '<' are left-aligned."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            column.removeprefix("<"),
            justify="left" if column.startswith("<") else "right",
            overflow="fold",
        )
    return table


def listed(
    names: Sequence[str], headings: Sequence[str], rows: Sequence[Mapping[str, Any]], matching: int
) -> list[RenderableType]:
    """A table of the rows, if there are any, and a line if more rows match than are shown."""
    parts: list[RenderableType] = []
    if rows:
        table = plain_table(*headings)
        for row in rows:
            table.add_row(*[str(row.get(name, "")) for name in names])
        parts.append(table)
    if matching > len(rows):
        more = f"{matching - len(rows)} more match; limit={matching} shows them"
        parts.append(Text(more, "dim"))
    return parts
