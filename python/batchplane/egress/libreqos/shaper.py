# SPDX-License-Identifier: BSD-3-Clause
"""shaper.py - a network and its circuits as two trees, two address tables and a pipeline."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...base.problems import Problem
from ...base.whole_file import write_whole
from .devices import Circuit
from .network import DIRECTIONS, Network

_QUEUE_S = 0.1  # of a circuit at its maximum
_LEAST_QUEUE_BYTES = 30_000
_MAX_WEIGHT = 10_000
# Input port, output port and the address that identifies packets, by direction.
_WAYS = {"download": ("core", "access", "destination"), "upload": ("access", "core", "source")}


@dataclass(frozen=True)
class Shaper:
    """The content of an ISP's files."""

    network: Network
    circuits: list[Circuit]

    def tree_rows(self, direction: str) -> Iterator[str]:
        """Lines of a `tree_file`: places, then circuits as flows 1, 2, .. in their order."""
        yield "node,parent,flow,min_rate_bps,ceil_bps,weight,limit_bytes,queue"
        for place in self.network.places.values():
            ceil = place.ceil_bps.get(direction, "")
            yield f"{place.name},{place.parent},,,{ceil},,,"
        for flow, circuit in enumerate(self.circuits, start=1):
            low, high = circuit.min_bps[direction], circuit.max_bps[direction]
            # Bandwidth beyond the minima is shared in proportion to them; 0.1 Mbit/s counts 1.
            weight = min(max(round(low / 1e5), 1), _MAX_WEIGHT)
            limit = max(round(high / 8 * _QUEUE_S), _LEAST_QUEUE_BYTES)
            # LibreQoS defaults to CAKE, which gives each connection its own queue too.
            queue = "fifo" if circuit.sqm[direction] == "none" else "fq_codel"
            yield f",{circuit.parent},{flow},{low},{high},{weight},{limit},{queue}"

    def prefix_rows(self) -> Iterator[str]:
        """Lines of a `prefixes_file`."""
        yield "prefix,mark"
        for flow, circuit in enumerate(self.circuits, start=1):
            for prefix in circuit.prefixes:
                yield f"{prefix},{flow}"

    def overbooked(self, link_bps: dict[str, int]) -> list[Problem]:
        """Circuits that cannot all have their minimum at once, grouped by the place that is too
        small."""
        problems = []
        for direction in DIRECTIONS:
            below: dict[str, list[Circuit]] = defaultdict(list)
            for circuit in self.circuits:
                at = circuit.parent
                while at:
                    below[at].append(circuit)
                    at = self.network.places[at].parent
                below[""].append(circuit)
            for name, circuits in below.items():
                ceil = self.network.places[name].ceil_bps if name else link_bps
                wanted = sum(circuit.min_bps[direction] for circuit in circuits)
                if direction in ceil and wanted > ceil[direction]:
                    problems.append(_overbooked(name, direction, circuits, wanted, ceil[direction]))
        return problems


def _overbooked(
    name: str, direction: str, circuits: list[Circuit], wanted: int, ceil: int
) -> Problem:
    some = ", ".join(circuit.id for circuit in circuits[:5])
    more = f" and {len(circuits) - 5} more" if len(circuits) > 5 else ""
    whose = f"node '{name}'" if name else "the link"
    message = (
        f"{direction}: minima of its circuits add up to {wanted / 1e6:g} Mbit/s, "
        f"{whose} carries {ceil / 1e6:g}"
    )
    fix = f"lower the minimum of {some}{more}"
    return Problem(message, fix=fix, is_warning=True)


def pipeline_text(
    shaper: Shaper,
    folder: Path,
    link_bps: dict[str, int],
    ports: dict[str, str],
    is_overbooked: bool,
) -> str:
    """A bridge between two interfaces that shapes both directions."""
    circuits, places = len(shaper.circuits), len(shaper.network.places)
    # Absolute paths: a daemon may be started in any folder.
    prefixes = json.dumps(str((folder / "prefixes.csv").resolve()))
    overbook = "true" if is_overbooked else "false"
    lines = [
        "# SPDX-License-Identifier: BSD-3-Clause",
        "# shaper.yaml - a bridge that shapes the circuits of an ISP, both ways. Made from its",
        "# LibreQoS files; change those and make it again, or change it live.",
        "name: shaper",
        "ports:",
        *(
            f"  {side}: {{kind: af_packet, interface: {json.dumps(name)}}}"
            for side, name in ports.items()
        ),
        "modules:",
    ]
    connect = []
    for direction, (came, goes, by) in _WAYS.items():
        lines += [
            f"  in_{came}: {{kind: port_in, port: {came}}}",
            f"  {direction}_circuit: {{kind: prefix_mark, by: {by}, prefixes_file: {prefixes}}}",
            f"  {direction}:",
            "    kind: egress",
            "    discipline: tree",
            f"    rate_bps: {link_bps.get(direction, 0)}",
            "    overhead_bytes: 24",
            "    min_frame_bytes: 84",
            f"    tree_file: {json.dumps(str((folder / f'{direction}.csv').resolve()))}",
            f"    max_flows: {circuits + max(circuits // 4, 64)}",
            f"    max_nodes: {places + max(places // 4, 64)}",
            f"    total_limit_pkts: {max(16_384, 32 * circuits)}",
            f"    overbook: {overbook}",
            f"  out_{goes}: {{kind: port_out, port: {goes}, when_full: wait}}",
        ]
        connect.append(f"  - in_{came} -> {direction}_circuit -> {direction} -> out_{goes}")
    return "\n".join([*lines, "connect:", *connect]) + "\n"


def write_shaper(
    shaper: Shaper, folder: Path, link_bps: dict[str, int], ports: dict[str, str]
) -> list[Problem]:
    """Writes shaper.yaml, download.csv, upload.csv and prefixes.csv; returns overbooked places."""
    overbooked = shaper.overbooked(link_bps)
    for direction in DIRECTIONS:
        write_whole(folder / f"{direction}.csv", "\n".join(shaper.tree_rows(direction)) + "\n")
    write_whole(folder / "prefixes.csv", "\n".join(shaper.prefix_rows()) + "\n")
    text = pipeline_text(shaper, folder, link_bps, ports, bool(overbooked))
    write_whole(folder / "shaper.yaml", text)
    return overbooked
