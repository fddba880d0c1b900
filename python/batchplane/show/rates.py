# SPDX-License-Identifier: BSD-3-Clause
"""rates.py - computes what happened between two snapshots of a daemon, grouped for reading."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Snapshot = dict[str, Any]

PERCENTILES = ("p50", "p95", "p99", "p99.9")
CAUSES = ("full", "age", "idle", "change")
_GROUP_FROM = 4  # this many similar names are shown as one row


@dataclass(frozen=True)
class ModuleRow:
    """One module, or several similar ones."""

    name: str
    kind: str
    count: int
    rate_pps: float
    batch_mean_pkts: float | None
    ns_per_pkt: float | None
    load_ratio: float | None  # share of one core
    dropped_pps: float


@dataclass(frozen=True)
class BufferRow:
    """The buffers of one module, or of several similar ones."""

    name: str
    count: int
    trigger_pkts: str
    age_limit_ns: int | None
    held_pkts: int
    firings: dict[str, float]  # per second, by cause
    wait_mean_ns: float | None
    late_releases: int


@dataclass(frozen=True)
class FlowRow:
    """One flow, or several similar ones with the worst delays among them."""

    name: str
    count: int
    rate_pps: float
    delay_slo_ns: int | None
    delay_mean_ns: float | None
    percentiles_ns: dict[str, float | None]
    delay_max_ns: float | None
    late_ratio: float | None


@dataclass(frozen=True)
class DropRow:
    name: str
    count: int
    reason: str
    pkts: int
    rate_pps: float
    meaning: str
    remedy: str


@dataclass(frozen=True)
class Rates:
    """Everything that the live view shows."""

    interval_s: float
    in_pps: float
    out_pps: float
    dropped_pps: float
    held_pkts: int
    in_flight_pkts: int
    is_exact: bool
    workers: list[dict[str, Any]] = field(default_factory=list)
    modules: list[ModuleRow] = field(default_factory=list)
    buffers: list[BufferRow] = field(default_factory=list)
    flows: list[FlowRow] = field(default_factory=list)
    drops: list[DropRow] = field(default_factory=list)
    ports: list[dict[str, Any]] = field(default_factory=list)
    generators: list[dict[str, Any]] = field(default_factory=list)


def compute_rates(before: Snapshot | None, now: Snapshot) -> Rates:
    """Rates between two `show all`; without the first, since the start."""
    before = before or {}
    runtime, old_runtime = now["runtime"], before.get("runtime", {})
    start_ns = old_runtime.get("now_ns", runtime.get("epoch_ns", 0))
    interval_s = float(max(runtime["now_ns"] - start_ns, 1)) / 1e9
    balance, old_balance = runtime["balance"], old_runtime.get("balance", {})

    def rate(*keys: str) -> float:
        grown = sum(balance.get(key, 0) - old_balance.get(key, 0) for key in keys)
        return float(grown) / interval_s

    return Rates(
        interval_s=interval_s,
        in_pps=rate("in_pkts"),
        out_pps=rate("sent_pkts"),
        dropped_pps=rate("dropped_pkts"),
        held_pkts=balance.get("held_pkts", 0),
        in_flight_pkts=balance.get("in_flight_pkts", 0),
        is_exact=bool(balance.get("is_exact", True)),
        workers=list(runtime.get("workers", [])),
        modules=_modules(
            in_order_of_the_way(runtime.get("modules", []), now.get("graph", {})),
            old_runtime.get("modules", []),
            interval_s,
        ),
        buffers=_buffers(buffer_list(now), buffer_list(before), interval_s),
        flows=_flows(now.get("flows", []), before.get("flows", []), interval_s),
        drops=_drops(now.get("drops", []), before.get("drops", []), interval_s),
        ports=_ports(now.get("ports", []), before.get("ports", []), interval_s),
        generators=_generators(now.get("generators", []), before.get("generators", []), interval_s),
    )


def buffer_list(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The buffers of a snapshot, whether listed alone or beside worst_firings_per_run."""
    buffers = snapshot.get("buffers", [])
    return list(buffers.get("buffers", []) if isinstance(buffers, dict) else buffers)


def in_order_of_the_way(rows: list[dict[str, Any]], graph: dict[str, Any]) -> list[dict[str, Any]]:
    """Modules in packet order: by the longest path from an input."""
    depth = {row["name"]: 0 for row in rows}
    edges = [(edge["from"], edge["to"]) for edge in graph.get("edges", [])]
    for _ in range(len(rows)):
        deeper = {
            to: depth[start] + 1 for start, to in edges if depth.get(to, 0) <= depth.get(start, -1)
        }
        deeper = {name: at for name, at in deeper.items() if name in depth and at < len(rows)}
        if not deeper:
            break
        depth.update(deeper)
    return sorted(rows, key=lambda row: depth[row["name"]])


def family(name: str) -> str:
    """The name with its last number replaced: ttl_3 and ttl_17 both give ttl_*."""
    return re.sub(r"\d+(?!.*\d)", "*", name)


def _families(
    rows: Iterable[dict[str, Any]], key: str, *more: str
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Rows in their order; similar ones are grouped if there are enough of them."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((family(row[key]), *(str(row.get(name)) for name in more)), []).append(
            row
        )
    result = []
    for (label, *_), members in groups.items():
        if len(members) >= _GROUP_FROM:
            result.append((label, members))
        else:
            result += [(row[key], [row]) for row in members]
    return result


def _old(rows: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row.get(key) for key in keys): row for row in rows}


def _total(rows: Iterable[dict[str, Any]], key: str) -> float:
    return sum(row.get(key) or 0 for row in rows)


def _modules(
    rows: list[dict[str, Any]], before: list[dict[str, Any]], interval_s: float
) -> list[ModuleRow]:
    old = _old(before, "name")
    result = []
    for name, members in _families(rows, "name", "kind"):
        past = [old.get((row["name"],), {}) for row in members]
        pkts = _total(members, "pkts") - _total(past, "pkts")
        batches = _total(members, "batches") - _total(past, "batches")
        timed = [
            (row["ns_per_pkt"], row["pkts"] - then.get("pkts", 0))
            for row, then in zip(members, past, strict=True)
            if row.get("ns_per_pkt") is not None
        ]
        weight = sum(share for _, share in timed)
        ns = sum(cost * share for cost, share in timed) / weight if weight > 0 else None
        result.append(
            ModuleRow(
                name=name,
                kind=members[0].get("kind", ""),
                count=len(members),
                rate_pps=pkts / interval_s,
                batch_mean_pkts=pkts / batches if batches > 0 else None,
                ns_per_pkt=ns,
                load_ratio=None if ns is None else ns * pkts / interval_s / 1e9,
                dropped_pps=(_total(members, "dropped_pkts") - _total(past, "dropped_pkts"))
                / interval_s,
            )
        )
    return result


def _cause(row: dict[str, Any], cause: str, what: str) -> float:
    return float(row.get("causes", {}).get(cause, {}).get(what, 0))


def is_buffer_used(row: dict[str, Any]) -> bool:
    """True if the buffer holds packets, has held some, or has a trigger."""
    fired = any(_cause(row, cause, "firings") for cause in CAUSES)
    return bool(row.get("trigger_pkts") or row.get("held_pkts") or fired)


def _buffers(
    rows: list[dict[str, Any]], before: list[dict[str, Any]], interval_s: float
) -> list[BufferRow]:
    old = _old(before, "module")
    used = [row for row in rows if is_buffer_used(row)]
    result = []
    for name, members in _families(used, "module"):
        past = [old.get((row["module"],), {}) for row in members]

        def grown(
            cause: str,
            what: str,
            now: list[dict[str, Any]] = members,
            then: list[dict[str, Any]] = past,
        ) -> float:
            return sum(_cause(row, cause, what) for row in now) - sum(
                _cause(row, cause, what) for row in then
            )

        pkts = sum(grown(cause, "pkts") for cause in CAUSES)
        wait_ns = sum(grown(cause, "wait_ns") for cause in CAUSES)
        triggers = sorted({int(row.get("trigger_pkts", 0)) for row in members})
        limits = [row["age_limit_ns"] for row in members if row.get("age_limit_ns") is not None]
        result.append(
            BufferRow(
                name=name,
                count=len(members),
                trigger_pkts=str(triggers[0])
                if len(triggers) == 1
                else f"{triggers[0]}..{triggers[-1]}",
                age_limit_ns=min(limits, default=None),
                held_pkts=int(_total(members, "held_pkts")),
                firings={cause: grown(cause, "firings") / interval_s for cause in CAUSES},
                wait_mean_ns=wait_ns / pkts if pkts > 0 else None,
                late_releases=int(_total(members, "late_releases")),
            )
        )
    return result


def _worst(rows: Iterable[dict[str, Any]], key: str) -> float | None:
    return max((row[key] for row in rows if row.get(key) is not None), default=None)


def _flows(
    rows: list[dict[str, Any]], before: list[dict[str, Any]], interval_s: float
) -> list[FlowRow]:
    old = _old(before, "name")
    result = []
    shown = [row for row in rows if row["name"] != "other" or row.get("pkts")]
    for name, members in _families(shown, "name", "delay_slo_ns"):
        past = [old.get((row["name"],), {}) for row in members]
        pkts = _total(members, "pkts") - _total(past, "pkts")
        late = _total(members, "late_pkts") - _total(past, "late_pkts")
        percentiles = [row.get("percentiles_ns") or {} for row in members]
        slo_ns = members[0].get("delay_slo_ns") or None
        result.append(
            FlowRow(
                name=name,
                count=len(members),
                rate_pps=pkts / interval_s,
                delay_slo_ns=slo_ns,
                delay_mean_ns=_worst(members, "delay_mean_ns"),
                delay_max_ns=_worst(members, "delay_max_ns"),
                percentiles_ns={p: _worst(percentiles, p) for p in PERCENTILES},
                late_ratio=late / pkts if pkts > 0 and slo_ns else None,
            )
        )
    return result


def _drops(
    rows: list[dict[str, Any]], before: list[dict[str, Any]], interval_s: float
) -> list[DropRow]:
    old = _old(before, "module", "reason")
    result = []
    for name, members in _families([row for row in rows if row.get("pkts")], "module", "reason"):
        past = _total([old.get((row["module"], row["reason"]), {}) for row in members], "pkts")
        pkts = _total(members, "pkts")
        first = members[0]
        result.append(
            DropRow(
                name,
                len(members),
                first["reason"],
                int(pkts),
                (pkts - past) / interval_s,
                first.get("meaning", ""),
                first.get("remedy", ""),
            )
        )
    return sorted(result, key=lambda row: (-row.rate_pps, -row.pkts))


def _ports(
    rows: list[dict[str, Any]], before: list[dict[str, Any]], interval_s: float
) -> list[dict[str, Any]]:
    old = _old(before, "name")
    result = []
    for row in rows:
        stats, then = row.get("stats", {}), old.get((row["name"],), {}).get("stats", {})
        rates = {
            f"{key.removesuffix('_pkts')}_pps": (value - then.get(key, 0)) / interval_s
            for key, value in stats.items()
            if key.endswith("_pkts")
        }
        result.append(
            {
                "name": row["name"],
                "kind": row.get("kind", ""),
                "is_up": row.get("is_up", True),
                **rates,
            }
        )
    return result


def _generators(
    rows: list[dict[str, Any]], before: list[dict[str, Any]], interval_s: float
) -> list[dict[str, Any]]:
    old = _old(before, "name")
    return [
        {
            **row,
            **{
                f"{key}_pps": (
                    row.get(f"{key}_pkts", 0) - old.get((row["name"],), {}).get(f"{key}_pkts", 0)
                )
                / interval_s
                for key in ("sent", "refused")
            },
        }
        for row in rows
    ]
