# SPDX-License-Identifier: BSD-3-Clause
"""replay.py - plays arrivals from a file through a packet scheduler and a link, and writes the
departures.

    FLOWS.csv       flow,weight,lmax_bytes      (optional: limit_pkts)
    ARRIVALS.csv    ns,flow,bytes
    DEPARTURES.csv  release_ns,flow,bytes       in the order of release

A flow's name is any text. A packet is released when its first bit goes onto the link.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..base.problems import BadInput, Problem, suggestion
from ..base.text_file import read_text
from ..base.whole_file import write_whole
from ..native.loader import load_native

_NO_LIMIT_PKTS = 1 << 30
_MAX_NS = 10**18


@dataclass
class Flows:
    """The flows, by number."""

    names: list[str] = field(default_factory=list)
    weight: list[int] = field(default_factory=list)
    lmax_bytes: list[int] = field(default_factory=list)
    limit_pkts: list[int] = field(default_factory=list)


@dataclass
class Arrivals:
    """Packets in order of arrival."""

    ns: list[int] = field(default_factory=list)
    flow: list[int] = field(default_factory=list)
    len_bytes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Replayed:
    """Departures in order of release, and refused arrivals."""

    release_ns: list[int]
    flow: list[int]
    len_bytes: list[int]
    refused: list[int]  # indices of arrivals


def _rows(
    path: Path, columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Position and fields of each row; the header names the columns."""
    reader = csv.reader(io.StringIO(read_text(path)))
    header = [name.strip() for name in next(reader, [])]
    missing = [name for name in columns if name not in header]
    if missing:
        wanted = ",".join(columns)
        raise BadInput(
            Problem(f"column '{missing[0]}' is missing", f"{path}:1", fix=f"begin with: {wanted}")
        )
    known = {*columns, *optional}
    for name in header:
        if name not in known:
            fix = suggestion(name, known)
            raise BadInput(Problem(f"unknown column '{name}'", f"{path}:1", fix=fix))
    for row in reader:
        if not row:
            continue
        where = f"{path}:{reader.line_num}"
        if len(row) != len(header):
            message = f"{len(row)} fields where the header has {len(header)}"
            raise BadInput(Problem(message, where))
        yield where, dict(zip(header, (text.strip() for text in row), strict=True))


def _whole(row: dict[str, str], key: str, where: str, least: int, most: int) -> int:
    text = row[key]
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise BadInput(Problem(f"'{text}' is not a whole number", where, key))
    value = int(text)
    if not least <= value <= most:
        raise BadInput(Problem(f"{value} is out of range", where, key, f"{least} to {most}"))
    return value


def read_flows(path: Path) -> Flows:
    """Reads FLOWS.csv. Raises BadInput."""
    flows = Flows()
    seen: dict[str, str] = {}
    native = load_native()
    for where, row in _rows(path, ("flow", "weight", "lmax_bytes"), ("limit_pkts",)):
        name = row["flow"]
        if name in seen:
            raise BadInput(Problem(f"'{name}' is there twice", where, "flow", f"see {seen[name]}"))
        seen[name] = where
        flows.names.append(name)
        flows.weight.append(_whole(row, "weight", where, 1, native.EGRESS_MAX_WEIGHT))
        flows.lmax_bytes.append(_whole(row, "lmax_bytes", where, 1, native.EGRESS_MAX_PKT_BYTES))
        limit = row.get("limit_pkts", "")
        flows.limit_pkts.append(
            _whole(row, "limit_pkts", where, 1, _NO_LIMIT_PKTS) if limit else _NO_LIMIT_PKTS
        )
    if not flows.names:
        raise BadInput(Problem("there is no flow", str(path), fix="one line each"))
    return flows


def read_arrivals(path: Path, flows: Flows) -> Arrivals:
    """Reads ARRIVALS.csv, whose flows must be in `flows`. Raises BadInput."""
    number = {name: k for k, name in enumerate(flows.names)}
    arrivals = Arrivals()
    max_pkt_bytes = load_native().EGRESS_MAX_PKT_BYTES
    before = 0
    for where, row in _rows(path, ("ns", "flow", "bytes")):
        ns = _whole(row, "ns", where, 0, _MAX_NS)
        if ns < before:
            raise BadInput(Problem(f"{ns} is before {before}", where, "ns", "sort by time"))
        before = ns
        name = row["flow"]
        if name not in number:
            fix = suggestion(name, flows.names, "add it to the flows")
            raise BadInput(Problem(f"there is no flow '{name}'", where, "flow", fix))
        arrivals.ns.append(ns)
        arrivals.flow.append(number[name])
        arrivals.len_bytes.append(_whole(row, "bytes", where, 1, max_pkt_bytes))
    return arrivals


def replay(
    discipline: str, flows: Flows, arrivals: Arrivals, rate_bps: int, overhead_bytes: int = 0
) -> Replayed:
    """Plays arrivals through a scheduler. Raises BadInput."""
    native = load_native()
    try:
        return Replayed(
            *native.egress_replay(
                discipline,
                [flows.weight, flows.lmax_bytes, flows.limit_pkts],
                [arrivals.ns, arrivals.flow, arrivals.len_bytes],
                rate_bps,
                overhead_bytes,
            )
        )
    except native.ConfigError as error:
        raise BadInput([Problem(str(text)) for text in error.args]) from error


def costs_ns(
    discipline: str, flows: int, is_saturated: bool, is_mixed: bool, trials: int
) -> list[float]:
    """Time to enqueue and dequeue a packet on the current core, one value per trial."""
    found: list[float] = load_native().egress_costs_ns(
        discipline, flows, is_saturated, is_mixed, trials
    )
    return found


def disciplines() -> list[str]:
    """The names of all disciplines."""
    return list(load_native().EGRESS_DISCIPLINES)


def rate_range_bps() -> tuple[int, int]:
    """The least and the greatest rate of a link."""
    native = load_native()
    return native.EGRESS_MIN_RATE_BPS, native.EGRESS_MAX_RATE_BPS


def write_departures(
    path: Path, flows: Flows, result: Replayed, write: Callable[[Path, str], None] = write_whole
) -> None:
    """Writes DEPARTURES.csv."""
    lines = ["release_ns,flow,bytes"]
    quoted = [_quoted(name) for name in flows.names]
    for ns, flow, len_bytes in zip(result.release_ns, result.flow, result.len_bytes, strict=True):
        lines.append(f"{ns},{quoted[flow]},{len_bytes}")
    write(path, "\n".join(lines) + "\n")


def _quoted(name: str) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([name])
    return text.getvalue()
