# SPDX-License-Identifier: BSD-3-Clause
"""show_sessions.py - what `show sessions` asks of a mobile gateway, and how it prints it.

Beside the sessions: the latest reports, of usage rules with thresholds and of what waits for users.
"""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from .client import Client
from .plain_table import listed
from .problems import RunFailed

_KINDS = (
    "gtpu_decap", "session_downlink", "session_hold", "session_enforce", "gtpu_encap",
    "session_split",
)  # fmt: skip
_DEFAULT_LIMIT = 40
_REPORTS = 10
_COLUMNS = (
    "seid", "ue", "rules", "up_pkts", "up_bytes", "up_dropped_pkts", "down_pkts", "down_bytes",
    "down_dropped_pkts",
)  # fmt: skip
_REPORT_COLUMNS = ("number", "seid", "kind", "urr", "trigger", "pdr", "up_bytes", "down_bytes")


def collect_sessions(client: Client, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """Each table of sessions, with those sessions that the filters leave and what they used.

    Filters: seid, ue, limit, rules. Raises RunFailed without modules that know sessions.
    """
    tables: dict[str, str] = {}
    for node in client.show("graph")["nodes"]:
        if node["kind"] in _KINDS:
            params = node.get("params") or {}
            tables.setdefault(str(params.get("table", "sessions")), str(node["name"]))
    if not tables:
        raise RunFailed("the running pipeline knows no sessions", f"a {_KINDS[0]} module does")
    wanted = {"limit": _DEFAULT_LIMIT, **filters}
    return [
        {
            "table": table,
            "module": module,
            **client.module(module, "list", wanted),
            "reports": _latest_reports(client, module, filters),
        }
        for table, module in tables.items()
    ]


def _latest_reports(client: Client, module: str, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """The last few that the table has, of one session where only that is asked for."""
    latest = client.module(module, "reports", {"limit": 0})["latest"]
    if "seid" in filters:
        wanted = {"seid": filters["seid"], "limit": 4096}
    else:
        wanted = {"after": max(latest - _REPORTS, 0), "limit": _REPORTS}
    told: list[dict[str, Any]] = client.module(module, "reports", wanted)["reports"]
    return told[-_REPORTS:]


def render_sessions(data: list[dict[str, Any]]) -> RenderableType:
    """One block per table: sessions and what they used in each direction."""
    parts: list[RenderableType] = []
    for table in data:
        matching = table["matching"]
        parts.append(Text.assemble((table["table"], "bold"), f"  {matching} sessions"))
        headings = [name if "_" in name else f"<{name}" for name in _COLUMNS]
        parts += listed(_COLUMNS, headings, table["sessions"], matching)
        if not table.get("reports"):
            continue
        parts.append(Text("latest reports", "bold"))
        headings = [name if "_" in name else f"<{name}" for name in _REPORT_COLUMNS]
        rows = [{name: row.get(name, "") for name in _REPORT_COLUMNS} for row in table["reports"]]
        parts += listed(_REPORT_COLUMNS, headings, rows, len(rows))
    return Group(*parts)
