# SPDX-License-Identifier: BSD-3-Clause
"""devices.py - what a pipeline's modules would do on each set of devices: rates, delays, watts.

The plans come from placement (src/placement). It ignores the time in which the worker hands packets
over: that is added here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..costs.batch_laws import AppLaw
from ..costs.devices import INLINE, SIMULATED
from ..native.loader import load_native

POLICIES = ("throughput", "latency", "power")
# The same values as in the daemon's placement (src/placement/loop.cc).
BUDGET_SHARE = 0.5
UNPROMISED_NS = 1e6
USUAL_UTILISATION = 0.9
_MOST_DEVICES = 6
_ALL_SERVED = 0.9999
_STEPS = 24
_EFFORT = 1_000_000
Solve = Callable[[dict[str, Any], int], dict[str, Any]]


@dataclass(frozen=True)
class PlacedApp:
    """A module that can run on devices, and its traffic."""

    name: str
    kind: str
    rate_pps: float
    pkt_bytes: float
    budget_ns: float
    slo_ns: float  # the tightest on its path; 0: none
    on: tuple[str, ...]
    max_batch_pkts: int
    value: float = 1.0
    policy: str = ""  # its own, which overrides the one for the others


@dataclass(frozen=True)
class PlacedDevice:
    """A device, or the worker."""

    name: str
    kind: str
    off_w: float = 0.0
    idle_w: float = 0.0
    active_w: float = 0.0


@dataclass
class DeviceCase:
    """The whole placement problem."""

    apps: list[PlacedApp]
    devices: list[PlacedDevice]
    laws: dict[tuple[str, str], AppLaw]  # by module and device
    beside: list[dict[str, Any]] = field(default_factory=list)  # rows of `slowdown`
    inline_share: float = 0.5
    watt_cap: float = 0.0

    def problem(self, names: Sequence[str], policy: str, scale: float = 1.0) -> dict[str, Any]:
        """The problem in the form of the extension, for these devices and with scaled rates."""
        devices = [device for device in self.devices if device.name in names]
        stretch = USUAL_UTILISATION / max(0.01, self.inline_share)
        apps = {}
        for app in self.apps:
            laws = {}
            for device in devices:
                known = self.laws.get((app.name, device.name))
                if known is None or device.name not in app.on:
                    continue
                times = stretch if device.name == INLINE else 1.0
                most = min(app.max_batch_pkts, known.max_batch_pkts)
                laws[device.name] = {
                    **known.law.times(times).as_json(),
                    "max_batch_pkts": most,
                }
            if laws:
                apps[app.name] = {
                    "policy": app.policy or policy, "rate_pps": app.rate_pps * scale,
                    "pkt_bytes": app.pkt_bytes, "budget_ns": app.budget_ns, "value": app.value,
                    "laws": laws,
                }  # fmt: skip
        return {
            "devices": {
                d.name: {"off_w": d.off_w, "idle_w": d.idle_w, "active_w": d.active_w}
                for d in devices
            },
            "apps": apps,
            "slowdown": [
                row
                for row in self.beside
                if row["on"] in names
                and row["on_other"] in names
                and row["app"] in apps
                and row["beside"] in apps
            ],
            "watt_cap": self.watt_cap,
        }

    def worker_share(
        self, plan: Mapping[str, Any], outcome: Mapping[str, Any], scale: float
    ) -> float:
        """The share of the worker's time: modules that run there, and packets handed over."""
        stretch = USUAL_UTILISATION / max(0.01, self.inline_share)
        busy = float(outcome["utilisation"].get(INLINE, 0.0)) / stretch
        for app in self.apps:
            for device, place in plan.get(app.name, {}).items():
                feed = self.laws[app.name, device].feed
                batch_ns = feed.at(place["batch_pkts"], app.pkt_bytes)
                pps = app.rate_pps * scale * place["share"]
                busy += 1e-9 * pps * batch_ns / place["batch_pkts"]
        return busy


@dataclass(frozen=True)
class SetRow:
    """One set of devices under one policy."""

    devices: tuple[str, ...]
    policy: str
    carries_pps: float  # of all packets offered to these modules, whatever the policy
    is_worker_bound: bool
    served: float
    worst_delay: float  # relative to the SLO
    watts: float
    worker_share: float
    plan: dict[str, Any]
    outcome: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in self.__dataclass_fields__}


def sets_of(case: DeviceCase) -> Iterator[tuple[str, ...]]:
    """All sets of devices that some module can use, small ones first."""
    used = [
        d.name
        for d in case.devices
        if any((app.name, d.name) in case.laws and d.name in app.on for app in case.apps)
    ]
    for n in range(1, len(used) + 1):
        yield from itertools.combinations(used, n)


def plan_sets(case: DeviceCase, solve: Solve | None = None) -> list[SetRow]:
    """A row for each set and policy."""
    find = solve or load_native().placement_solve
    rows = []
    most: dict[frozenset[str], tuple[float, bool]] = {}
    for names in sets_of(case):
        # A search with an effort limit may find less for more devices: then some stay idle.
        within = [known for fewer, known in most.items() if fewer < set(names)]
        carries, is_bound = max([carried(case, names, find), *within])
        most[frozenset(names)] = carries, is_bound
        for policy in POLICIES:
            problem = case.problem(names, policy)
            answer = find(problem, _EFFORT)
            rows.append(_row(case, names, policy, (carries, is_bound), answer))
    return rows


def offered_pps(case: DeviceCase) -> float:
    """The packet rate offered to all modules together; a packet counts at each module it passes."""
    return sum(app.rate_pps for app in case.apps)


def carried(case: DeviceCase, names: Sequence[str], find: Solve) -> tuple[float, bool]:
    """The most of this mix that is served in time, and whether the worker is the bottleneck."""
    offered = offered_pps(case)
    if offered <= 0 or len(case.problem(names, "throughput")["apps"]) < len(case.apps):
        return 0.0, False
    low, high, is_bound = 0.0, 1.0, False

    def limits(scale: float) -> tuple[bool, bool]:
        answer = find(case.problem(names, "throughput", scale), _EFFORT // 4)
        is_served = answer["outcome"]["served"] >= _ALL_SERVED
        share = case.worker_share(answer["plan"], answer["outcome"], scale)
        return is_served, share > USUAL_UTILISATION

    def is_possible(scale: float) -> bool:
        nonlocal is_bound
        is_served, is_worker_full = limits(scale)
        if not is_served or is_worker_full:
            is_bound = is_served
        return is_served and not is_worker_full

    while is_possible(high) and high < 1e6:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
        if high - low < 1e-3 * high:
            break
    return low * offered, is_bound


def _row(
    case: DeviceCase,
    names: tuple[str, ...],
    policy: str,
    most: tuple[float, bool],
    answer: dict[str, Any],
) -> SetRow:
    outcome, plan = answer["outcome"], answer["plan"]
    offered = offered_pps(case)
    served = sum(
        app.rate_pps * sum(place["share"] for place in plan.get(app.name, {}).values())
        for app in case.apps
    )
    worst = max(
        (outcome["delay_ns"].get(app.name, 0.0) / (app.slo_ns or app.budget_ns))
        for app in case.apps
    )
    return SetRow(
        names, policy, *most, served / offered if offered else 1.0, worst, outcome["watts"],
        case.worker_share(plan, outcome, 1.0), plan, outcome,
    )  # fmt: skip


def bought(case: DeviceCase, rows: Sequence[SetRow]) -> list[dict[str, Any]]:
    """What each simulated device adds to all real ones."""
    real = tuple(d.name for d in case.devices if d.kind != SIMULATED)
    by_set = {(frozenset(row.devices), row.policy): row for row in rows}
    told = []
    for card in (d for d in case.devices if d.kind == SIMULATED):
        for policy in POLICIES:
            without = by_set.get((_used(rows, real), policy))
            with_it = by_set.get((_used(rows, (*real, card.name)), policy))
            if with_it is None or card.name not in with_it.devices:
                continue
            told.append(
                {
                    "device": card.name, "policy": policy,
                    "carries_pps": with_it.carries_pps, "watts": with_it.watts,
                    "served": with_it.served,
                    "without": None if without is None else {
                        "carries_pps": without.carries_pps, "watts": without.watts,
                        "served": without.served,
                    },
                }
            )  # fmt: skip
    return told


def _used(rows: Sequence[SetRow], names: Sequence[str]) -> frozenset[str]:
    known = {name for row in rows for name in row.devices}
    return frozenset(names) & known


def at_rate(case: DeviceCase, factor: float) -> DeviceCase:
    """The same mix at `factor` times the rates."""
    apps = [replace(app, rate_pps=app.rate_pps * factor) for app in case.apps]
    return replace(case, apps=apps)


def too_many(case: DeviceCase) -> str:
    """Why the problem is too large for placement; empty if it is not."""
    if len(case.devices) > _MOST_DEVICES:
        return f"placement knows {_MOST_DEVICES} devices at most, `inline` among them"
    return "placement knows 8 modules with devices at most" if len(case.apps) > 8 else ""
