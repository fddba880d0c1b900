# SPDX-License-Identifier: BSD-3-Clause
"""saturated.py - traffic that never runs out, from generators and at real ports.

A simulation cannot know what a real port receives. Under `saturated` it gets packets of every flow
declared to begin there, in turn; without such flows, one flow for each reachable output. The
packets take the gates that a path names, so neighbours are resolved and everything is permitted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from ..base.problems import BadInput, Problem
from ..lang.canonical import Document
from .traffic import RING, Traffic, ring_of

SATURATED = "saturated"
_INPUTS = ("port_in", "source")
_OUTPUTS = ("port_out", "sink")  # where flows may end
_BATCH_PKTS = 32


@dataclass(frozen=True)
class Saturated:
    """A pipeline with rings for its real ports, their traffic, and the ports they replace."""

    document: Document
    traffic: Traffic
    ports: dict[str, str]  # kinds of the ports that got a generator
    flows: tuple[str, ...]  # names of the flows whose packets come in there

    def told(self) -> str:
        """One line about the assumptions."""
        ports = " and ".join(f"{name} ({kind})" for name, kind in self.ports.items())
        flows = ", ".join(self.flows[:4])
        more = f" and {len(self.flows) - 4} more flows" if self.flows[4:] else ""
        return (
            f"the pipeline has no generator: assumed are packets that always wait at {ports}, of "
            f"{flows}{more} in turn; --traffic FILE gives other traffic"
        )


def saturated(document: Document) -> Saturated:
    """Traffic with which every input always has packets. Raises BadInput if there is no input."""
    pipeline = dict(document.pipeline)
    modules = pipeline.get("modules", {})
    flows = list(pipeline.get("flows", []))
    ports = dict(pipeline.get("ports", {}))
    generators = [
        {"name": entry["name"], "port": entry["port"], "params": {"saturate": True}}
        for entry in pipeline.get("generators", [])
    ]
    # Not ports that a generator fills already, and not rings between parts of the pipeline.
    taken = {entry["port"] for entry in generators} | {
        module.get("params", {}).get("port")
        for module in modules.values()
        if module["kind"] == "port_out"
        and ports.get(module.get("params", {}).get("port"), {}).get("kind") == RING
    }
    kinds: dict[str, str] = {}
    names: list[str] = []
    for name, module in modules.items():
        port = module.get("params", {}).get("port")
        if module["kind"] != "port_in" or port in taken or port not in ports:
            continue
        mine = [flow for flow in flows if _first(flow) == name]
        if not mine:
            mine = _flows_to_outputs(pipeline, name)
            flows += mine
        entries = [{"name": flow["name"], "flow": flow["name"]} for flow in mine]
        names += [str(flow["name"]) for flow in mine]
        kinds[port] = str(ports[port]["kind"])
        params = {"saturate": True, **({"flows": entries} if entries else {})}
        generators.append({"name": port, "port": port, "params": params})
        if kinds[port] != RING:
            # Two batches only: waiting outside is not a delay of the pipeline.
            batch_pkts = pipeline.get("engine", {}).get("batch_pkts", _BATCH_PKTS)
            ports[port] = ring_of(2 * batch_pkts)
    if not generators and not any(module["kind"] in _INPUTS for module in modules.values()):
        raise BadInput(Problem("the pipeline has no input", document.file, "modules"))
    pipeline.update(ports=ports, flows=flows)
    return Saturated(
        replace(document, pipeline=pipeline), Traffic(SATURATED, generators), kinds, tuple(names)
    )


def _first(flow: dict[str, Any]) -> str:
    return str(flow["path"][0]).split(":")[0]


def _flows_to_outputs(pipeline: dict[str, Any], start: str) -> list[dict[str, Any]]:
    """One flow for each output that packets from `start` can reach without being dropped."""
    modules = pipeline.get("modules", {})
    edges: dict[str, list[dict[str, Any]]] = {}
    for edge in pipeline.get("edges", []):
        if edge["gate"] != "drop":
            edges.setdefault(edge["from"], []).append(edge)
    paths = {start: [start]}
    todo = deque([start])
    flows = []
    while todo:
        at = todo.popleft()
        if modules[at]["kind"] in _OUTPUTS:
            flows.append({"name": f"{start}_to_{at}", "path": paths[at]})
        for edge in edges.get(at, []):
            if edge["to"] not in paths:
                paths[edge["to"]] = [*paths[at][:-1], f"{at}:{edge['gate']}", edge["to"]]
                todo.append(edge["to"])
    return flows
