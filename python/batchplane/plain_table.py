# SPDX-License-Identifier: BSD-3-Clause
"""plain_table.py - the one look of tables that commands print."""

from __future__ import annotations

from rich.table import Table


def plain_table(*columns: str) -> Table:
    """A table without lines; columns that begin with '<' are aligned left."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            column.removeprefix("<"),
            justify="left" if column.startswith("<") else "right",
            overflow="fold",
        )
    return table
