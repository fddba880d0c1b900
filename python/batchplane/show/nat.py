# SPDX-License-Identifier: BSD-3-Clause
"""nat.py - `show nat`: queries the NAT modules of a daemon and prints their connections."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import listed
from ..base.problems import RunFailed
from ..daemon.client import Client

_KIND = "napt"
_DEFAULT_LIMIT = 40
_COLUMNS = ("protocol", "inside", "outside", "remote", "state", "idle_s")


def collect_nat(client: Client, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """The counters of every NAT module, and the connections that match the filters.

    Filters: protocol, state, inside, outside, remote, limit. Raises RunFailed without NAT modules.
    """
    modules = [row for row in client.show("tables") if row.get("kind") == _KIND]
    if not modules:
        raise RunFailed("the running pipeline has no NAT", f"add a {_KIND} module")
    wanted = {"limit": _DEFAULT_LIMIT, **filters}
    return [
        {
            **row,
            "connections_now": row["connections"],
            **client.module(row["module"], "list", wanted),
        }
        for row in modules
    ]


def render_nat(data: list[dict[str, Any]]) -> RenderableType:
    """One block per NAT module: counters, ports per external address, connections."""
    parts: list[RenderableType] = []
    for module in data:
        states = ", ".join(f"{n} {name}" for name, n in module["states"].items() if n)
        share = f"{module['connections_now']} of {module['max_connections']} connections"
        parts.append(Text.assemble((module["module"], "bold"), f"  {share}", f"  {states}"))
        for row in module.get("external", []):
            used = ", ".join(f"{row[f'{name}_ports']} {name}" for name in ("tcp", "udp", "icmp"))
            parts.append(Text(f"  {row['address']}: ports used: {used}", "dim"))
        headings = [f"<{name}" for name in _COLUMNS]
        parts += listed(_COLUMNS, headings, module["connections"], module["matching"])
    return Group(*parts)
