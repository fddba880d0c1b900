# SPDX-License-Identifier: BSD-3-Clause
"""file.py - the format of costs files, and every mistake that one can contain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..base.problems import Problem
from .law import CostLaw, law_from

VERSION = 2
LABELS = ("measured", "prior", "given")
MAX_NS = 1e9  # a module that takes a second per batch is a mistake
# As src/base/engine_costs.h has them, in words.
LOOP_COSTS = {
    "clock_read_ns": "one clock reading",
    "empty_poll_ns": "an empty poll",
    "poll_per_batch_ns": "a poll with packets, without its modules",
    "poll_per_pkt_ns": "per packet polled, including metering at egress",
    "scatter_per_branch_ns": "per branch that a batch is split across",
    "scatter_per_pkt_ns": "per packet split",
    "firing_ns": "one buffer firing",
    "buffered_per_pkt_ns": "per packet through a buffer",
    "ring_take_per_batch_ns": "one batch taken from a queue",
    "ring_take_per_pkt_ns": "per packet taken from a queue",
    "egress_per_pkt_ns": "metering at egress alone, per packet",
    "hop_send_per_pkt_ns": "extra cost per packet sent to a worker on another core",
    "hop_take_per_pkt_ns": "extra cost per packet taken from such a worker",
    "far_per_batch_ns": "extra cost of a poll of packets from another core",
    "far_per_pkt_ns": "extra cost per packet from another core",
    "far_early_per_pkt_ns": "further cost for each of the first 8 of them",
    "sampled_per_batch_ns": "extra cost of a sampled run per module batch",
    "generator_look_ns": "generator: one look at its schedule",
    "generator_per_burst_ns": "generator: one burst put into the ring",
    "generator_per_pkt_ns": "generator: per packet made",
    "generator_store_ns": "generator: from the last word of a burst until the worker sees it",
}
LOOP_KEYS = tuple(LOOP_COSTS)
# Costs that contain another one: reading the clock, or booking a packet's delay at egress.
LOOP_PARTS = {
    "poll_per_batch_ns": "clock_read_ns",
    "empty_poll_ns": "clock_read_ns",
    "poll_per_pkt_ns": "egress_per_pkt_ns",
}
_NOISE_NS = 1.0  # of a difference of two measured costs, as the profiler has it
_NOISE = 0.05  # the same, of a cost
# Files older than these keys are read as if they were 0.
_LATER_LOOP_KEYS = (
    "hop_send_per_pkt_ns",
    "hop_take_per_pkt_ns",
    "far_early_per_pkt_ns",
    "sampled_per_batch_ns",
    "generator_store_ns",
)
_LINE_KEYS = ("cost_per_batch_ns", "cost_per_pkt_ns")
_AGAIN = "batchplane profile --pipeline PIPELINE --out costs.json"


@dataclass(frozen=True)
class Entry:
    """One measurement, and the modules that it represents."""

    name: str
    kind: str
    law: CostLaw
    members: tuple[str, ...] = ()
    params_key: str = ""  # empty if unknown
    port_kind: str = ""  # kind of a port module's port; empty: a ring in memory, or no port


@dataclass
class Head:
    """The fields of a file besides its entries."""

    label: str = "given"
    cpu: str = ""
    date: str = ""
    cycles_per_ns: float = 1.0
    loop: dict[str, float] = field(default_factory=dict)
    hop: CostLaw | None = None  # of a batch from one module to the next


class _Reader:
    def __init__(self, file: str):
        self._file = file
        self.problems: list[Problem] = []

    def note(self, key: str, message: str, fix: str = "") -> None:
        self.problems.append(Problem(message, self._file, key, fix))

    def time_ns(self, entry: Mapping[str, Any], name: str, key: str) -> float:
        """A cost: finite, not negative, at most a second."""
        value = entry.get(name)
        return self.checked_ns(value, f"{key}.{name}")

    def checked_ns(self, value: Any, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            self.note(key, f"expected a time in ns, not {value!r}", "0 to 1e9")
        elif value < 0:
            self.note(key, f"a cost of {value:g} ns is negative", _AGAIN)
        elif value > MAX_NS:
            self.note(key, f"a cost of {value:g} ns is more than a second", "times are in ns")
        else:
            return float(value)
        return 0.0


def parse_document(document: Any, file: str) -> tuple[Head, list[Entry], list[Problem]]:
    """Head, entries and every mistake of a costs file."""
    reader = _Reader(file)
    if not isinstance(document, dict) or not isinstance(document.get("modules"), list):
        reader.note("", "this is not a costs file: it needs version and a list of modules", _AGAIN)
        return Head(), [], reader.problems
    version = document.get("version")
    if version != VERSION:
        reader.note(
            "version", f"a costs file of version {version!r}; this program reads {VERSION}", _AGAIN
        )
        return Head(), [], reader.problems
    head = _parse_head(document, reader)
    entries = [
        entry
        for i, given in enumerate(document["modules"])
        if (entry := _parse_entry(given, f"modules[{i}]", reader)) is not None
    ]
    return head, entries, reader.problems


def _parse_head(document: Mapping[str, Any], reader: _Reader) -> Head:
    head = Head(
        str(document.get("label", "given")),
        str(document.get("cpu", "")),
        str(document.get("date", "")),
    )
    if head.label not in LABELS:
        reader.note("label", f"unknown label '{head.label}'", f"one of: {', '.join(LABELS)}")
    rate = document.get("cycles_per_ns", 1.0)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.1 <= rate <= 100:
        reader.note("cycles_per_ns", f"expected cycles per ns, not {rate!r}", "0.1 to 100")
    else:
        head.cycles_per_ns = float(rate)
    head.hop = _parse_hop(document.get("hop"), reader)
    loop = document.get("loop", {})
    if not isinstance(loop, dict):
        reader.note("loop", "expected the engine's own costs by name")
        return head
    for key, value in loop.items():
        if key not in LOOP_KEYS:
            reader.note(f"loop.{key}", "unknown cost", f"one of: {', '.join(LOOP_KEYS)}")
        else:
            head.loop[key] = reader.checked_ns(value, f"loop.{key}")
    for whole, part in LOOP_PARTS.items():
        if whole not in head.loop or part not in head.loop:
            continue
        whole_ns, part_ns = head.loop[whole], head.loop[part]
        if whole_ns < part_ns - max(_NOISE_NS, _NOISE * part_ns):
            message = f"{whole_ns:g} ns, less than {part}, a part of it: {part_ns:g} ns"
            reader.note(f"loop.{whole}", message, _AGAIN)
        head.loop[whole] = max(whole_ns, part_ns)
    needed = [key for key in LOOP_KEYS if key not in _LATER_LOOP_KEYS]
    missing = [key for key in needed if loop and key not in loop]
    if missing:
        reader.note(
            "loop", f"missing: {', '.join(missing)}", "give all keys of loop, or leave loop out"
        )
    return head


def _parse_hop(given: Any, reader: _Reader) -> CostLaw | None:
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) - set(_LINE_KEYS):
        reader.note("hop", "expected cost_per_batch_ns and cost_per_pkt_ns, or no hop at all")
        return None
    per_batch_ns, per_pkt_ns = (reader.time_ns(given, key, "hop") for key in _LINE_KEYS)
    return CostLaw(per_batch_ns, per_pkt_ns)


def _parse_entry(given: Any, key: str, reader: _Reader) -> Entry | None:
    if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
        reader.note(key, "expected kind, and cost_per_batch_ns and cost_per_pkt_ns or table_ns")
        return None
    name = str(given.get("name", ""))
    shown = f"{key} ({name or given['kind']})"
    law = _parse_law(given, shown, reader)
    members = given.get("members") or ([name] if name else [])
    if not isinstance(members, list) or not all(isinstance(m, str) for m in members):
        reader.note(f"{shown}.members", "expected names of modules")
        members = []
    words = (str(given.get(word, "")) for word in ("params_key", "port_kind"))
    return Entry(name, given["kind"], law, tuple(members), *words)


def _parse_law(given: Mapping[str, Any], shown: str, reader: _Reader) -> CostLaw:
    n_before = len(reader.problems)
    checked: dict[str, Any] = {}
    table = given.get("table_ns")
    if table is None or any(key in given for key in _LINE_KEYS):
        checked = {key: reader.time_ns(given, key, shown) for key in _LINE_KEYS}
    if table is not None:
        checked["table_ns"] = table
        _check_table(table, given.get("table_pkts"), shown, reader)
    if given.get("table_pkts") is not None:
        checked["table_pkts"] = given["table_pkts"]
    return law_from(checked) if len(reader.problems) == n_before else CostLaw(0.0, 0.0)


def _check_table(table: Any, sizes: Any, shown: str, reader: _Reader) -> None:
    if not isinstance(table, list) or not table:
        reader.note(f"{shown}.table_ns", "expected a list of times in ns, for 1, 2, ... packets")
        return
    for i, value in enumerate(table):
        reader.checked_ns(value, f"{shown}.table_ns[{i}]")
    if sizes is None:
        return
    is_whole = isinstance(sizes, list) and all(type(size) is int for size in sizes)
    if not is_whole or len(sizes) != len(table):
        reader.note(f"{shown}.table_pkts", f"expected the {len(table)} batch sizes of table_ns")
    elif sizes[0] < 1 or any(b <= a for a, b in pairwise(sizes)):
        reader.note(f"{shown}.table_pkts", "batch sizes must ascend, from 1 packet on")
