# SPDX-License-Identifier: BSD-3-Clause
"""devices.py - ShapedDevices.csv: the addresses of each circuit, and its rates."""

from __future__ import annotations

import csv
import io
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from ...base.problems import BadInput, Problem
from ...base.text_file import read_text
from .network import DIRECTIONS, Network

Prefix = ipaddress.IPv4Network | ipaddress.IPv6Network
SQM = ("cake", "fq_codel", "none")
_COLUMNS = (
    *("Circuit ID", "Circuit Name", "Device ID", "Device Name", "Parent Node", "MAC", "IPv4"),
    *("IPv6", "Download Min Mbps", "Upload Min Mbps", "Download Max Mbps", "Upload Max Mbps"),
    "Comment",
)


@dataclass
class Circuit:
    """One customer, whose devices share a queue in each direction."""

    id: str
    name: str
    where: str
    parent: str  # a place of the network; empty: the link
    min_bps: dict[str, int]
    max_bps: dict[str, int]
    sqm: dict[str, str]  # empty: not given
    prefixes: list[Prefix] = field(default_factory=list)


def _mbps(row: dict[str, str], column: str, least: float, where: str) -> int:
    try:
        mbps = float(row[column])
    except ValueError:
        mbps = -1.0
    if not least <= mbps <= 1e6:
        fix = f"Mbit/s, {least:g} at least"
        raise BadInput(Problem(f"'{row[column]}' is no rate", where, column, fix))
    return round(mbps * 1e6)


def _prefixes(row: dict[str, str], where: str) -> list[Prefix]:
    found: list[Prefix] = []
    for column, version in (("IPv4", 4), ("IPv6", 6)):
        for text in row[column].split(","):
            if not text.strip():
                continue
            try:
                prefix = ipaddress.ip_network(text.strip(), strict=False)
            except ValueError as error:
                problem = Problem(f"'{text.strip()}' is no address or prefix", where, column)
                raise BadInput(problem) from error
            if prefix.version != version:
                raise BadInput(Problem(f"'{text.strip()}' is no {column} address", where, column))
            found.append(prefix)
    return found


def _sqm(text: str, where: str) -> dict[str, str]:
    """Parses `cake`, `fq_codel`, `none`, or `down/up` with either side empty."""
    sides = text.lower().split("/") if "/" in text else [text.lower()] * 2
    if len(sides) != 2 or any(side.strip() and side.strip() not in SQM for side in sides):
        fix = "cake, fq_codel, none, or two of them as down/up"
        raise BadInput(Problem(f"'{text}' is no queue discipline", where, "sqm", fix))
    return dict(zip(DIRECTIONS, (side.strip() for side in sides), strict=True))


class _Reader:
    def __init__(self, network: Network, path: Path):
        self.network = network
        self.path = path
        self.circuits: dict[str, Circuit] = {}
        self.owners: dict[Prefix, Circuit] = {}
        self.warnings: list[Problem] = []

    def _parent(self, name: str, where: str) -> str:
        if name in self.network.stands_for:
            return self.network.stands_for[name]
        message = f"there is no node '{name}': the circuit hangs at the link"
        self.warnings.append(Problem(message, where, "Parent Node", is_warning=True))
        return ""

    def _circuit(self, row: dict[str, str], where: str) -> Circuit:
        low = {d: _mbps(row, f"{d.capitalize()} Min Mbps", 0.1, where) for d in DIRECTIONS}
        high = {d: _mbps(row, f"{d.capitalize()} Max Mbps", 0.2, where) for d in DIRECTIONS}
        for direction in DIRECTIONS:
            if low[direction] > high[direction]:
                column = f"{direction.capitalize()} Min Mbps"
                raise BadInput(Problem("the minimum is above the maximum", where, column))
        parent = self._parent(row["Parent Node"], where)
        sqm = _sqm(row.get("sqm", ""), where)
        return Circuit(row["Circuit ID"], row["Circuit Name"], where, parent, low, high, sqm)

    def add(self, row: dict[str, str], where: str) -> None:
        key = row["Circuit ID"]
        if not key:
            raise BadInput(Problem("the circuit has no ID", where, "Circuit ID"))
        # The first device of a circuit sets the rates of all.
        circuit = self.circuits.get(key)
        if circuit is None:
            circuit = self.circuits[key] = self._circuit(row, where)
        for prefix in _prefixes(row, where):
            owner = self.owners.setdefault(prefix, circuit)
            if owner is not circuit:
                fix = f"circuit '{owner.id}' has it, see {owner.where}"
                raise BadInput(Problem(f"{prefix} is there twice", where, fix=fix))
            if prefix not in circuit.prefixes:
                circuit.prefixes.append(prefix)

    def read(self, text: str) -> None:
        # Lines, not rows: comments may stand anywhere, and errors need the file's line numbers.
        lines = ["" if line.startswith("#") else line for line in text.splitlines(keepends=True)]
        reader = csv.reader(io.StringIO("".join(line or "\n" for line in lines)))
        header: list[str] = []
        for cells in reader:
            where = f"{self.path}:{reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                missing = [column for column in _COLUMNS if column not in header]
                if missing:
                    raise BadInput(Problem(f"column '{missing[0]}' is missing", where))
                continue
            if len(cells) < len(_COLUMNS) or len(cells) > len(header):
                message = f"{len(cells)} fields where the header has {len(header)}"
                raise BadInput(Problem(message, where))
            padded = [*cells, *[""] * (len(header) - len(cells))]
            row = {name: cell.strip() for name, cell in zip(header, padded, strict=True)}
            self.add(row, where)


def read_devices(path: Path, network: Network) -> tuple[list[Circuit], list[Problem]]:
    """The circuits of the file, in its order, and warnings. Raises BadInput."""
    reader = _Reader(network, path)
    reader.read(read_text(path))
    if not reader.circuits:
        raise BadInput(Problem("there is no circuit", str(path), fix="one device a line"))
    return list(reader.circuits.values()), reader.warnings
