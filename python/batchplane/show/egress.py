# SPDX-License-Identifier: BSD-3-Clause
"""egress.py - `show egress`: the guarantees of schedulers for flows and nodes, and their use."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.problems import RunFailed
from ..base.units import short_bits, short_count, short_duration
from ..daemon.client import Client, DaemonError, told_as_input

INTERVAL_S = 0.5


def collect_egress(client: Client, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """The status of each scheduler that has the node, with rates over half a second.

    Filters: node, limit, by, module. Raises RunFailed if there is no such scheduler.
    """
    known = [node["name"] for node in client.show("graph")["nodes"] if node["kind"] == "egress"]
    modules = [name for name in known if filters.get("module", name) == name]
    if not modules:
        fix = f"there is {', '.join(known)}" if known else "add an egress module"
        raise RunFailed("the running pipeline has no such scheduler", fix)
    question = {key: value for key, value in filters.items() if key != "module"}
    if "node" in question:
        question["node"] = str(question["node"])
    told: list[dict[str, Any]] = []
    refused: DaemonError | None = None
    for name in modules:
        try:
            told.append({"module": name, **client.module(name, "status", question)})
        except DaemonError as error:
            refused = error
    if refused is not None and not told:
        with told_as_input():
            raise refused
    time.sleep(INTERVAL_S)
    return [with_rates(first, _again(client, first)) for first in told]


def _again(client: Client, first: dict[str, Any]) -> dict[str, Any]:
    """The same rows, later."""
    numbers = [row["number"] for row in first["rows"]]
    return {**first, **client.module(first["module"], "status", {"numbers": numbers})}


def with_rates(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """A scheduler's status, with the rate of each row that it also had before."""
    seconds = max(now["now_ns"] - before["now_ns"], 1) / 1e9
    sent = {row["number"]: row["bytes"] for row in before["rows"]}
    rows = [
        {**row, "rate_bps": max(row["bytes"] - sent[row["number"]], 0) * 8 / seconds}
        if row["number"] in sent
        else row
        for row in now["rows"]
    ]
    return {**now, "rows": rows}


def schedulers_of(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """The schedulers in two answers of `show all`, with the rates between them."""
    old = {row["module"]: row["status"] for row in before.get("tables", []) if "status" in row}
    return [
        {
            "module": row["module"],
            **with_rates(old.get(row["module"], row["status"]), row["status"]),
        }
        for row in now.get("tables", [])
        if "status" in row
    ]


def render_egress(data: list[dict[str, Any]]) -> RenderableType:
    """A block for each scheduler."""
    return Group(*egress_blocks(data)[1:])


def egress_blocks(data: list[dict[str, Any]]) -> list[RenderableType]:
    """The parts of render_egress(), with an empty line before each scheduler."""
    parts: list[RenderableType] = []
    for told in data:
        parts += [Text(""), _title(told), egress_table(told)]
        if not told["is_whole"]:
            more = f"the worst of {told['n_nodes']} nodes and {told['n_flows']} flows"
            parts.append(Text(f"{more}; show egress NODE tells what is below it", "dim"))
    return parts


def _title(told: dict[str, Any]) -> Text:
    link = short_bits(told["rate_bps"]) if told["rate_bps"] else "as fast as its port"
    facts = f"  {told['discipline']}, {link}, {told['held_pkts']} packets held"
    return Text.assemble((told["module"], "bold"), facts)


def egress_table(told: dict[str, Any]) -> Table:
    """One scheduler: a node and, indented, everything below it; or the worst below it."""
    table = plain_table(
        "<node or flow", "minimum", "ceiling", "share", "carries", "waiting", "in bytes", "p50 <",
        "p99 <", "at most", "marked", "<dropped",
    )  # fmt: skip
    top = told["rows"][0]["level"]
    for row in told["rows"]:
        table.add_row(
            "  " * (row["level"] - top) + _name(row) if told["is_whole"] else _full_name(row),
            short_bits(row.get("min_rate_bps")),
            short_bits(row.get("ceil_bps")),
            f"{row['share']:.1%}" if "share" in row else "-",
            short_bits(row.get("rate_bps")),
            str(row["backlog_pkts"]),
            short_count(row.get("backlog_bytes")),
            short_duration(row["sojourn_p50_ns"] or None),
            short_duration(row["sojourn_p99_ns"] or None),
            short_duration(row.get("bound_ns")),
            short_count(row["marked_pkts"] or None),
            _drops(row),
        )
    return table


def _name(row: dict[str, Any]) -> str:
    return f"flow {row['flow']}" if "flow" in row else str(row.get("node", "link"))


def _full_name(row: dict[str, Any]) -> str:
    return _name(row) + (f" of {row['parent']}" if "parent" in row else "")


def _drops(row: dict[str, Any]) -> Text:
    reasons = [f"{short_count(n)} {reason}" for reason, n in row["drops"].items()]
    return Text(", ".join(reasons), "red")
