# SPDX-License-Identifier: BSD-3-Clause
"""edits.py - turns settings and scenario actions into changes for the extension's edit()."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.problems import BadInput, Problem
from ..changes.events import Action
from ..changes.play import new_cost
from ..costs.law import law_from

_GENERATOR_KEYS = ("rate_pps", "is_on", "weights", "is_saturating")


def edits_of_sets(sets: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The protocol's `set` objects as one change, or none. Raises BadInput if it has no model."""
    edit: dict[str, Any] = {}
    for change in sets:
        what = change["what"]
        if what == "trigger":
            buffer = edit.setdefault("buffers", {}).setdefault(change["module"], {})
            buffer["trigger_pkts"] = change["trigger_pkts"]
        elif what == "weight":
            buffer = edit.setdefault("buffers", {}).setdefault(change["module"], {})
            buffer["weight"] = change["weight"]
        elif what == "age_limit":
            buffer = edit.setdefault("buffers", {}).setdefault(change["module"], {})
            # Without its own limit a module has the stranding limit, which is 0 here.
            buffer["age_limit_ns"] = change["age_limit_ns"] or 0
        elif what == "poll_pkts":
            edit.setdefault("polls", {})[change["module"]] = change["poll_pkts"]
        elif what == "slo":
            edit.setdefault("slo_ns", {})[change["flow"]] = change["delay_slo_ns"]
        elif what == "idle":
            edit["idle"] = change["mode"]
        elif what == "generator":
            _generator(edit.setdefault("generators", {}).setdefault(change["name"], {}), change)
        elif what == "placement":
            edit.setdefault("placement", []).append(change)
        else:
            raise BadInput(
                Problem(
                    f"a simulation has no {what} to set", "command line", change.get("name", "")
                )
            )
    return [edit] if edit else []


def _generator(target: dict[str, Any], change: dict[str, Any]) -> None:
    if "flow" in change:
        target.setdefault("flow_rate_pps", {})[change["flow"]] = change["rate_pps"]
        return
    for key in _GENERATOR_KEYS:
        if key in change:
            target[key] = change[key]


def edits_of_action(action: Action, spec: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """An action of a scenario as changes, and warnings about parts that have no model."""
    edits = edits_of_sets(action.sets)
    warnings = []
    if action.costs:
        first = spec["simulation"]["costs"]
        costs: dict[str, dict[str, Any]] = {}
        for module, change in action.costs.items():
            began = first.get(module, {})
            if change.times is not None and began.get("table_ns"):
                costs[module] = law_from(began).scaled(change.times).as_json()
            else:
                costs[module] = dict(new_cost(began, change))
        edits.append({"costs": costs})
    if action.stall_ns:
        edits.append({"stall_ns": dict(action.stall_ns)})
    if action.table is not None and action.table.verb == "device":
        edits.append({"devices": {action.table.module: dict(action.table.args)}})
    elif action.table is not None:
        warnings.append(
            f"{action.where}: {action.text}: simulated packets use no tables, so they keep "
            "their routes"
        )
    return edits, warnings
