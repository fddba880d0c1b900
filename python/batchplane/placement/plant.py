# SPDX-License-Identifier: BSD-3-Clause
"""plant.py - runs applications on devices in virtual time, with a placement policy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem
from ..native.loader import load_native

STANDINS = Path(__file__).with_name("standins.json")
PERIOD_S = 0.1
USUAL_EFFORT = 250_000
# For plans that show what devices could do; their search may take long.
LONG_EFFORT = 20 * USUAL_EFFORT


@dataclass(frozen=True)
class App:
    """An application: its initial traffic, its delay budget and its policy."""

    name: str
    rate_pps: float
    pkt_bytes: float = 512
    budget_ms: float = 5
    policy: str = "power"
    law: str = ""  # the application whose stand-in law it has; empty: its own name's

    def with_rate(self, rate_pps: float) -> App:
        """The same application with another rate."""
        return App(self.name, rate_pps, self.pkt_bytes, self.budget_ms, self.policy, self.law)


@dataclass(frozen=True)
class Load:
    """Applications, changes to them, and the duration."""

    apps: Sequence[App]
    seconds: float
    changes: Sequence[Mapping[str, Any]] = ()
    devices: Sequence[str] = ("cpu", "igpu", "dgpu")
    seed: int = 1


@dataclass
class Course:
    """One run, period by period."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def sum(self, key: str, app: str = "", first: int = 0, last: int | None = None) -> float:
        """The sum over all applications, or one, over periods [first, last)."""
        return float(
            sum(
                values[key]
                for row in self.rows[first:last]
                for name, values in row["apps"].items()
                if app in ("", name)
            )
        )

    def served(self, first: int = 0, last: int | None = None) -> float:
        """The fraction of the offered packets that came out of a device."""
        offered = self.sum("offered_pkts", first=first, last=last)
        return self.sum("served_pkts", first=first, last=last) / max(1.0, offered)

    def late(self, first: int = 0, last: int | None = None) -> float:
        """The fraction of the served packets that exceeded their budget."""
        served = self.sum("served_pkts", first=first, last=last)
        return self.sum("late_pkts", first=first, last=last) / max(1.0, served)

    def watts(self, first: int = 0, last: int | None = None) -> float:
        """The mean power, modelled."""
        rows = self.rows[first:last]
        return float(sum(row["joules"] for row in rows)) / (PERIOD_S * max(1, len(rows)))

    def delay_ms(self, app: str, first: int = 0, last: int | None = None) -> float:
        """The mean delay of the served packets."""
        served = self.sum("served_pkts", app, first, last)
        return self.sum("delay_sum_ns", app, first, last) / max(1.0, served) / 1e6

    def places(self, period: int) -> dict[str, str]:
        """The devices in use, by application."""
        plan = self.rows[period]["plan"]
        return {app: "+".join(sorted(places)) or "none" for app, places in plan.items()}


@lru_cache(maxsize=1)
def standins() -> dict[str, Any]:
    """Laws and watts of three devices that this machine need not have."""
    loaded: dict[str, Any] = json.loads(STANDINS.read_text(encoding="utf-8"))
    return loaded


def problem_of(load: Load, *, interferes: bool = True) -> dict[str, Any]:
    """The problem in the form of the extension."""
    data = standins()
    kinds = {name: name.rstrip("0123456789") for name in load.devices}  # dgpu2 is another dgpu
    apps = {}
    for app in load.apps:
        laws = data["laws"][app.law or app.name]
        apps[app.name] = {
            "policy": app.policy, "rate_pps": app.rate_pps, "pkt_bytes": app.pkt_bytes,
            "budget_ns": app.budget_ms * 1e6,
            "laws": {name: laws[kind] for name, kind in kinds.items()},
        }  # fmt: skip
    slowdown = [
        {"app": app.name, "on": on, "beside": other.name, "on_other": beside,
         "factor": data["beside"][kinds[on]].get(kinds[beside], 1.0)}
        for app in load.apps for other in load.apps if other is not app
        for on in load.devices for beside in load.devices if beside != on
    ]  # fmt: skip
    problem: dict[str, Any] = {
        "devices": {name: data["devices"][kind] for name, kind in kinds.items()},
        "apps": apps,
    }
    if interferes:
        problem["slowdown"] = slowdown
    return problem


def run(load: Load, chooser: str) -> Course:
    """Runs a chooser (src/placement/choosers.h), which knows laws but no slow-downs of devices.

    Raises BadInput.
    """
    plant = {
        **problem_of(load),
        "changes": list(load.changes),
        "duration_ns": load.seconds * 1e9,
        "period_ns": PERIOD_S * 1e9,
        "seed": load.seed,
    }
    native = load_native()
    try:
        rows = native.placement_run(plant, chooser, problem_of(load, interferes=False))
    except (native.ConfigError, ValueError) as error:
        raise BadInput([Problem(str(error), "placement")]) from error
    return Course(rows)


def solve(load: Load, effort: int = USUAL_EFFORT) -> dict[str, Any]:
    """The best plan for the initial rates, with slow-downs taken into account, and its results.

    `effort`: of the search, as in src/placement/solve.h.
    """
    answer: dict[str, Any] = load_native().placement_solve(problem_of(load), effort)
    return answer


def capacity_pps(load: Load) -> float:
    """The most packets a second of this mix that all devices together can serve in time."""
    total = sum(app.rate_pps for app in load.apps)
    low, high = 0.0, 1e9
    for _ in range(30):
        middle = (low + high) / 2
        scaled = [app.with_rate(app.rate_pps / total * middle) for app in load.apps]
        found = solve(Load(scaled, load.seconds, devices=load.devices), LONG_EFFORT)
        low, high = (middle, high) if found["outcome"]["served"] > 0.9999 else (low, middle)
    return low
