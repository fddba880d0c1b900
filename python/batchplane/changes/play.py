# SPDX-License-Identifier: BSD-3-Clause
"""play.py - applies the actions of a scenario to a running daemon, at their times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..base.problems import BatchplaneError
from ..base.units import short_duration
from ..daemon.client import Client
from ..daemon.process import Daemon
from .events import Action, CostChange

Tell = Callable[[str], None]


def warnings_for_daemon(actions: Sequence[Action], kinds: dict[str, str]) -> list[str]:
    """One line for each action that a daemon cannot carry out; `kinds` maps modules to kinds."""
    lines = []
    for action in actions:
        if action.stall_ns and action.table is None:
            lines.append(
                f"{action.where}: {action.text}: this has no effect here; only the simulator "
                "can stop a worker at will"
            )
        others = [name for name in action.costs if kinds.get(name) != "cost"]
        if others:
            lines.append(
                f"{action.where}: {action.text}: this has no effect here for "
                f"{', '.join(others[:3])}{' and more' if len(others) > 3 else ''}: only modules of "
                "kind cost can change their cost"
            )
    return lines


class DaemonPlayer:
    """Sends a scenario's actions to a daemon from its own thread; a context manager.

    An action that fails is reported and skipped; the run goes on.
    """

    def __init__(
        self, daemon: Daemon, actions: Sequence[Action], kinds: dict[str, str], tell: Tell
    ):
        self._daemon = daemon
        self._actions = list(actions)
        self._kinds = kinds
        self._tell = tell
        self._stop = threading.Event()
        self._first_costs: dict[str, dict[str, Any]] = {}
        self._thread = threading.Thread(target=self._run, name="scenario", daemon=True)
        self.done: list[Action] = []
        self.failed: list[tuple[Action, str]] = []

    def __enter__(self) -> DaemonPlayer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        start_s = time.monotonic()
        try:
            with Client(self._daemon.socket) as client:
                for action in self._actions:
                    wait_s = start_s + action.at_ns / 1e9 - time.monotonic()
                    if self._stop.wait(max(wait_s, 0.0)):
                        return
                    self._carry_out(client, action)
        except BatchplaneError as error:
            self._tell(f"the scenario ended early: {error}")

    def _carry_out(self, client: Client, action: Action) -> None:
        is_possible = any(self._kinds.get(module) == "cost" for module in action.costs)
        if not (action.sets or action.table or is_possible):
            return
        try:
            if action.sets:
                client.set(list(action.sets))
            for module, change in action.costs.items():
                if self._kinds.get(module) == "cost":
                    client.module(module, "set", self._new_cost(client, module, change))
            if action.table is not None:
                edit = action.table
                if edit.file is not None:
                    client.bulk_file(edit.module, edit.verb, edit.file)
                else:
                    client.module(edit.module, edit.verb, edit.args)
        except BatchplaneError as error:
            self.failed.append((action, str(error)))
            self._tell(f"{action.where}: {action.text}: {error}")
            return
        self.done.append(action)
        self._tell(f"t={short_duration(action.at_ns)}: {action.text}")

    def _new_cost(self, client: Client, module: str, change: CostChange) -> dict[str, float]:
        if module not in self._first_costs:
            rows = client.show("tables")
            self._first_costs.update({row["module"]: row for row in rows})
        return new_cost(self._first_costs.get(module, {}), change)


def new_cost(first: dict[str, Any], change: CostChange) -> dict[str, float]:
    """The cost of a module after a change, given its initial cost."""
    cost = {key: float(first.get(key, 0.0)) for key in ("cost_per_batch_ns", "cost_per_pkt_ns")}
    if change.times is not None:
        return {key: value * change.times for key, value in cost.items()}
    if change.cost_per_batch_ns is not None:
        cost["cost_per_batch_ns"] = change.cost_per_batch_ns
    if change.cost_per_pkt_ns is not None:
        cost["cost_per_pkt_ns"] = change.cost_per_pkt_ns
    return cost
