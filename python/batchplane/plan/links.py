# SPDX-License-Identifier: BSD-3-Clause
"""links.py - the links of packet schedulers in a plan: which limits the rate, and what is assumed
about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.units import short_bits, short_rate, three_digits
from ..show.rates import family
from ..sim.prepare import Inputs

PlanRow = dict[str, Any]

LINK = "link"  # as opposed to "core": what limits a plan
_SMALLEST_FRAME_BYTES = 64
_SIZES = ("size_bytes", "size_mix", "imix")


def name_limits(plan: PlanRow, spec: Mapping[str, Any]) -> None:
    """Sets `limited_by` of each link: its own rate, or the node or flow with the least ceiling."""
    for row in plan["links"]:
        number = row.pop("limited_by_node")
        row["limited_by"] = None if row["most_pps"] is None else "rate_bps"
        if number is None:
            continue
        nodes = spec["simulation"]["schedulers"][row["link"]].get("nodes", [])
        names = {node["number"]: node["name"] for node in nodes if "name" in node}
        row["limited_by"] = f"node {names[number]}" if number in names else f"flow {number}"


def tightest(plan: PlanRow) -> PlanRow | None:
    """The link that is full first; None if none has a limit that packets come to."""
    limits = [row for row in plan["links"] if row["most_pps"] is not None]
    return min(limits, key=lambda row: float(row["most_pps"]), default=None)


def limit_words(row: PlanRow) -> str:
    """A link, or the node of its tree that is full first."""
    if row["limited_by"] == "rate_bps":
        return f"the link '{row['link']}'"
    return f"{row['limited_by']} of the link '{row['link']}'"


def carried_words(row: PlanRow) -> str:
    """What fills the link."""
    return (
        f"{short_bits(row['limit_bps'])}, {three_digits(row['wire_bytes_per_pkt'])} bytes per "
        "packet on the wire"
    )


def link_doubts(plan: PlanRow, offered_pps: float | None) -> list[str]:
    """What a plan cannot promise of links."""
    told = []
    tight = tightest(plan)
    if tight is not None and offered_pps is not None and offered_pps > tight["most_pps"]:
        told.append(
            f"{short_rate(offered_pps)} are offered, and {limit_words(tight)} carries "
            f"{short_rate(tight['most_pps'])} of them: cores add nothing to that"
        )
    if unbounded := [row for row in plan["flows"] if row["link"] and row["link_ns"] is None]:
        links = sorted({f"'{row['link']}'" for row in unbounded})
        told.append(
            f"{_flows(unbounded)}: how long packets wait at {' and '.join(links)} has no bound, "
            "so delays are those of the core alone"
        )
    if beyond := [row for row in plan["flows"] if row["is_beyond_share"]]:
        told.append(
            f"{_flows(beyond)}: more than the share of the link; the time counted for it holds "
            "only while the others leave that to it"
        )
    return told


def assumed_sizes(inputs: Inputs, plan: PlanRow) -> list[str]:
    """A line about traffic whose packet sizes nobody gave, if links count them."""
    if not plan["links"]:
        return []
    simulation = inputs.spec["simulation"]
    sources = [
        (str(entry["name"]), entry.get("params", {}))
        for entry in inputs.document.pipeline.get("generators", [])
    ] + [
        (str(name), module.get("params", {}))
        for name, module in inputs.document.pipeline.get("modules", {}).items()
        if module["kind"] == "source"
    ]
    unknown = [
        name
        for name, params in sources
        if name not in simulation["traces"] and not _has_sizes(params)
    ]
    if not unknown:
        return []
    return [
        f"the packet sizes of {', '.join(unknown)} are not given: frames of "
        f"{_SMALLEST_FRAME_BYTES} bytes are assumed, which fill a link at the highest packet rate "
        "(size_bytes of a generator or a capture as --traffic says more)"
    ]


def _has_sizes(params: Mapping[str, Any]) -> bool:
    if any(params.get(key) for key in _SIZES):
        return True
    flows = params.get("flows") or [{}]
    return all(any(flow.get(key) for key in _SIZES) for flow in flows)


def group_name(names: list[str]) -> str:
    """One name, or what many alike have in common and their number."""
    return names[0] if len(names) == 1 else f"{family(names[0])} ({len(names)})"


def _flows(rows: list[PlanRow]) -> str:
    return group_name([str(row["flow"]) for row in rows])
