# SPDX-License-Identifier: BSD-3-Clause
"""graph.py - the running graph as a text tree, and for Graphviz."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rich.console import RenderableType
from rich.tree import Tree

from ..base.units import short_count


def graph_tree(data: dict[str, Any]) -> RenderableType:
    """The graph from its inputs; parts shown above are only named."""
    nodes = {node["name"]: node for node in data["nodes"]}
    leaving: dict[str, list[dict[str, Any]]] = defaultdict(list)
    entered = set()
    for edge in data["edges"]:
        leaving[edge["from"]].append(edge)
        entered.add(edge["to"])
    root = Tree("", hide_root=True, guide_style="dim")
    shown: set[str] = set()

    def add(tree: Tree, name: str, gate: str, pkts: int | None) -> None:
        node = nodes[name]
        label = f"{gate}[bold]{name}[/] [dim]{node.get('kind', '')}[/]"
        if pkts is not None:
            label += f" [green]{short_count(pkts)}[/]"
        if node.get("trigger_pkts"):
            label += f" [yellow]trigger {node['trigger_pkts']}[/]"
        if name in shown:
            tree.add(f"{label} [dim](above)[/]" if leaving[name] else label)
            return
        shown.add(name)
        branch = tree.add(label)
        for edge in leaving[name]:
            is_only = len(leaving[name]) == 1 and str(edge["gate"]) == "0"
            add(
                branch, edge["to"], "" if is_only else f"[cyan]{edge['gate']}[/] ", edge.get("pkts")
            )

    for name in [*[name for name in nodes if name not in entered], *nodes]:
        if name not in shown:
            add(root, name, "", nodes[name].get("pkts"))
    return root


def graph_dot(data: dict[str, Any], name: str = "pipeline") -> str:
    """The graph for `dot -Tsvg`; thicker edges carry more packets."""
    most = max((edge.get("pkts") or 0 for edge in data["edges"]), default=0) or 1
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", "  node [shape=box, fontname=sans];"]
    for node in data["nodes"]:
        trigger = f"\\ntrigger {node['trigger_pkts']}" if node.get("trigger_pkts") else ""
        label = f"{node['name']}\\n{node.get('kind', '')}{trigger}"
        lines.append(f"  {_quoted(node['name'])} [label={_quoted(label)}];")
    for edge in data["edges"]:
        pkts = edge.get("pkts") or 0
        label = "" if str(edge["gate"]) == "0" else f"{edge['gate']}\\n"
        style = ", style=dashed" if str(edge["gate"]) == "drop" else ""
        lines.append(
            f"  {_quoted(edge['from'])} -> {_quoted(edge['to'])} "
            f"[label={_quoted(label + short_count(pkts))}, "
            f"penwidth={1 + 4 * pkts / most:.1f}{style}];"
        )
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
