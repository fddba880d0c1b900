# SPDX-License-Identifier: BSD-3-Clause
"""network.py - network.json: the places of a network, and the capacity of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.json_file import parse_json
from ...base.problems import BadInput, Problem
from ...base.text_file import read_text

DIRECTIONS = ("download", "upload")


@dataclass(frozen=True)
class Place:
    """A node of the network that has its own queue."""

    name: str
    parent: str  # empty: the link
    ceil_bps: dict[str, int]  # by direction; not above the parent's


@dataclass(frozen=True)
class Network:
    """Places by name, parents first; `stands_for` maps a virtual node to its real parent."""

    places: dict[str, Place]
    stands_for: dict[str, str]


def _rate_bps(node: dict[str, Any], key: str, where: str, name: str) -> int | None:
    """The node's rate; None if it has none."""
    if key not in node:
        return None
    mbps = node[key]
    if isinstance(mbps, bool) or not isinstance(mbps, (int, float)) or not 0 < mbps <= 1e6:
        raise BadInput(Problem(f"{mbps!r} is no rate", where, f"{name}.{key}", "Mbit/s above 0"))
    return max(round(mbps * 1e6), 16_000)


class _Reader:
    def __init__(self, where: str):
        self.where = where
        self.network = Network({}, {"": ""})

    def read(self, nodes: Any, parent: str, above: dict[str, int]) -> None:
        if not isinstance(nodes, dict):
            problem = Problem("expected an object of nodes", self.where, parent or "the file")
            raise BadInput(problem)
        for name, node in nodes.items():
            self._one(name, node, parent, above)

    def _one(self, name: str, node: Any, parent: str, above: dict[str, int]) -> None:
        if not isinstance(node, dict):
            raise BadInput(Problem("expected an object", self.where, name))
        if name in self.network.stands_for:
            fix = "names of nodes must differ, as devices name their parents"
            raise BadInput(Problem(f"the node '{name}' is there twice", self.where, fix=fix))
        if "," in name or name != name.strip():
            fix = "a name without commas, and without blanks at its ends"
            raise BadInput(Problem(f"'{name}' is no name of a node", self.where, fix=fix))
        ceil = dict(above)
        for direction in DIRECTIONS:
            own = _rate_bps(node, f"{direction}BandwidthMbps", self.where, name)
            if own is not None:
                ceil[direction] = min(own, above.get(direction, own))
        is_virtual = node.get("virtual", False) is True
        stands = parent if is_virtual else name
        self.network.stands_for[name] = stands
        if not is_virtual:
            self.network.places[name] = Place(name, parent, ceil)
        self.read(node.get("children") or {}, stands, above if is_virtual else ceil)


def read_network(path: Path) -> Network:
    """Reads the file. Raises BadInput."""
    reader = _Reader(str(path))
    reader.read(parse_json(read_text(path), str(path)), "", {})
    return reader.network
