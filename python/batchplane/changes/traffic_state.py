# SPDX-License-Identifier: BSD-3-Clause
"""traffic_state.py - the traffic flows of generators, and the settings that stop and start them.

A traffic flow that stops takes its share of the rate with it: the others keep their rates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

DEFAULT_RATE_PPS = 100_000.0
_IMIX = [
    {"size_bytes": 64, "weight": 7},
    {"size_bytes": 594, "weight": 4},
    {"size_bytes": 1518, "weight": 1},
]


@dataclass
class TrafficFlow:
    """One entry of a generator's `flows`, `count` expanded."""

    name: str
    weight: float
    rate_pps: float  # 0: a share of the generator's rate
    size_bytes: int = 64  # frame size on the wire; the mean of a mix
    is_on: bool = True


@dataclass
class GeneratorState:
    """What a generator sends at one point of a time line."""

    name: str
    flows: list[TrafficFlow] = field(default_factory=list)
    rate_pps: float = DEFAULT_RATE_PPS  # shared by the flows without their own rate, if all are on
    is_on: bool = True

    @property
    def shared(self) -> list[TrafficFlow]:
        """The flows that share the generator's rate by weight."""
        return [flow for flow in self.flows if flow.rate_pps <= 0]

    def switch(self, names: Iterable[str], is_on: bool) -> list[dict[str, Any]]:
        """Stops or starts traffic flows; returns the protocol's `set` objects for it."""
        chosen = set(names)
        sets: list[dict[str, Any]] = []
        is_share_changed = False
        for flow in self.flows:
            if flow.name not in chosen or flow.is_on == is_on:
                continue
            flow.is_on = is_on
            if flow.rate_pps > 0:
                rate_pps = flow.rate_pps if is_on else 0.0
                sets.append(self._set(flow=flow.name, rate_pps=rate_pps))
            else:
                is_share_changed = True
        sets += self._shares() if is_share_changed else []
        must_be_on = any(flow.is_on for flow in self.flows)
        if must_be_on != self.is_on:
            self.is_on = must_be_on
            sets.append(self._set(is_on=must_be_on))
        return sets

    def _shares(self) -> list[dict[str, Any]]:
        all_weights = sum(flow.weight for flow in self.shared)
        weights = [flow.weight if flow.is_on and flow.rate_pps <= 0 else 0.0 for flow in self.flows]
        if sum(weights) <= 0:
            # A daemon rejects weights that are all zero; a rate of zero has the same effect.
            return [self._set(rate_pps=0.0)]
        rate_pps = self.rate_pps * sum(weights) / all_weights
        return [self._set(weights=weights, rate_pps=rate_pps)]

    def note(self, change: dict[str, Any]) -> None:
        """Records the user's own `set` for this generator."""
        if "flow" in change and "rate_pps" in change:
            for flow in self.flows:
                if flow.name == change["flow"]:
                    flow.rate_pps, flow.is_on = float(change["rate_pps"]), change["rate_pps"] > 0
        elif "rate_pps" in change:
            total = sum(flow.weight for flow in self.shared)
            on = sum(flow.weight for flow in self.shared if flow.is_on)
            self.rate_pps = float(change["rate_pps"]) * (total / on if on > 0 else 1.0)
        if "weights" in change and len(change["weights"]) == len(self.flows):
            for flow, weight in zip(self.flows, change["weights"], strict=True):
                flow.weight, flow.is_on = float(weight), True
        if "is_on" in change:
            self.is_on = bool(change["is_on"])

    def _set(self, **change: Any) -> dict[str, Any]:
        return {"what": "generator", "name": self.name, **change}


def generator_states(pipeline: dict[str, Any]) -> dict[str, GeneratorState]:
    """The generators of a canonical pipeline, inline sources included under their module's name."""
    states: dict[str, GeneratorState] = {}
    for entry in pipeline.get("generators", []):
        states[entry["name"]] = _state(entry["name"], entry.get("params", {}))
    for name, module in pipeline.get("modules", {}).items():
        if module.get("kind") == "source":
            states[name] = _state(name, module.get("params", {}))
    return states


def _state(name: str, params: dict[str, Any]) -> GeneratorState:
    flows: list[TrafficFlow] = []
    for entry in params.get("flows") or [{}]:
        count = int(entry.get("count", 1))
        given = str(entry.get("name", ""))
        weight, rate_pps = float(entry.get("weight", 1)), float(entry.get("rate_pps", 0))
        size_bytes = _size_bytes(entry, params)
        for i in range(count):
            label = f"flow {len(flows)}" if not given else given if count == 1 else f"{given}_{i}"
            flows.append(TrafficFlow(label, weight, rate_pps, size_bytes))
    return GeneratorState(
        name,
        flows,
        float(params.get("rate_pps", DEFAULT_RATE_PPS)),
        bool(params.get("is_on", True)),
    )


def _size_bytes(flow: dict[str, Any], params: dict[str, Any]) -> int:
    for given in (flow, params):
        mix = given.get("size_mix") or (_IMIX if given.get("imix") else [])
        total = sum(float(share.get("weight", 1)) for share in mix)
        if total > 0:
            sizes = (float(s.get("weight", 1)) * int(s.get("size_bytes", 64)) for s in mix)
            return round(sum(sizes) / total)
        if given.get("size_bytes"):
            return int(given["size_bytes"])
    return 64
