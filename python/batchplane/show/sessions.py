# SPDX-License-Identifier: BSD-3-Clause
"""sessions.py - `show sessions`: queries a mobile gateway and prints its sessions.

Besides the sessions it shows what remains of their quotas, and the latest reports: of usage rules,
and of packets held for users. It also prints the answers of commands that remove sessions or rules.
"""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import listed
from ..base.problems import RunFailed
from ..daemon.client import Client

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
_QUOTA_COLUMNS = (
    "seid", "urr", "quota_left_bytes", "up_quota_left_bytes", "down_quota_left_bytes",
    "quota_left_ns", "used_up",
)  # fmt: skip
_ENDED_COLUMNS = (
    "seid", "rule", "report", "up_pkts", "up_bytes", "down_pkts", "down_bytes", "dropped_pkts",
)  # fmt: skip
_REPORT_COLUMNS = ("number", "seid", "kind", "urr", "trigger", "pdr", "up_bytes", "down_bytes")


def collect_sessions(client: Client, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """Each table of sessions, with the sessions that match the filters and their usage.

    Filters: seid, ue, limit, rules. Raises RunFailed if no module knows sessions.
    """
    tables: dict[str, str] = {}
    for node in client.show("graph")["nodes"]:
        if node["kind"] in _KINDS:
            params = node.get("params") or {}
            tables.setdefault(str(params.get("table", "sessions")), str(node["name"]))
    if not tables:
        raise RunFailed("the running pipeline has no sessions", f"add a {_KINDS[0]} module")
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
    """The latest reports of the table, of one session if the filters name it."""
    latest = client.module(module, "reports", {"limit": 0})["latest"]
    if "seid" in filters:
        wanted = {"seid": filters["seid"], "limit": 4096}
    else:
        wanted = {"after": max(latest - _REPORTS, 0), "limit": _REPORTS}
    told: list[dict[str, Any]] = client.module(module, "reports", wanted)["reports"]
    return told[-_REPORTS:]


def render_sessions(data: list[dict[str, Any]]) -> RenderableType:
    """One block per table: sessions and their usage in each direction."""
    parts: list[RenderableType] = []
    for table in data:
        matching = table["matching"]
        parts.append(Text.assemble((table["table"], "bold"), f"  {matching} sessions"))
        headings = [name if "_" in name else f"<{name}" for name in _COLUMNS]
        parts += listed(_COLUMNS, headings, table["sessions"], matching)
        for title, columns, rows in (
            ("quotas", _QUOTA_COLUMNS, _quota_rows(table["sessions"])),
            ("latest reports", _REPORT_COLUMNS, table.get("reports")),
        ):
            if rows:
                parts.append(Text(title, "bold"))
                headings = [name if "_" in name else f"<{name}" for name in columns]
                parts += listed(columns, headings, rows, len(rows))
    return Group(*parts)


def _quota_rows(sessions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What remains of the quotas, for usage rules that have some."""
    return [
        {**urr, "seid": session["seid"], "urr": urr["id"], "used_up": _yes(urr["is_used_up"])}
        for session in sessions
        for urr in session.get("urrs") or ()
        if "is_used_up" in urr
    ]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def render_ended(ended: list[dict[str, Any]]) -> RenderableType:
    """What a command removed, with its usage: of URRs since their last report, of PDRs in total."""
    rows = []
    for one in ended:
        for urr in one["urrs"]:
            rows.append({**urr, "seid": one["seid"], "rule": f"urr {urr['id']}"})
        for pdr in one["pdrs"]:
            way = "up" if pdr["source"] == "access" else "down"
            row = {"seid": one["seid"], "rule": f"pdr {pdr['id']}"}
            row |= {f"{way}_pkts": pdr["pkts"], f"{way}_bytes": pdr["bytes"]}
            rows.append({**row, "dropped_pkts": pdr["dropped_pkts"]})
    n_deleted = sum(one["is_deleted"] for one in ended)
    what = f"{n_deleted} sessions ended" if n_deleted else "rules ended"
    parts: list[RenderableType] = [Text(f"{what}; URR usage since the last report:")]
    headings = [name if "_" in name else f"<{name}" for name in _ENDED_COLUMNS]
    parts += listed(_ENDED_COLUMNS, headings, rows[:_DEFAULT_LIMIT], 0)
    if len(rows) > _DEFAULT_LIMIT:
        parts.append(Text(f"{len(rows) - _DEFAULT_LIMIT} more rules; --json shows all", "dim"))
    return Group(*parts)
