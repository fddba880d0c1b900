# SPDX-License-Identifier: BSD-3-Clause
"""batch_laws.py - batch times of a pipeline's modules on its devices, and their origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .batch_law import BatchLaw
from .devices import CORES, INLINE, OWN_MEMORY, SIMULATED, DeviceProfile

# If nothing was measured: the way to a thread and back (src/placement/loop.cc).
_WAY = BatchLaw(600.0, 10.0)
# And the worker's part of it, roughly (bench_offload).
_FEED = BatchLaw(200.0, 10.0)

# The cost of a module on its worker and the origin in words; None if unknown.
CostOf = Callable[[str], tuple[BatchLaw, str] | None]


@dataclass(frozen=True)
class AppLaw:
    """The law of a module on a device; `feed` is the worker's time."""

    law: BatchLaw
    feed: BatchLaw
    origin: str
    max_batch_pkts: int = 16_384


class BatchLaws:
    """Chooses between the laws of the pipeline, the device profile and the worker's costs."""

    def __init__(
        self,
        pipeline: Mapping[str, Any],
        profile: DeviceProfile | None,
        cost_of: CostOf,
        are_own_costs: bool,
    ):
        self._modules = pipeline["modules"]
        self._given = (pipeline.get("placement") or {}).get("laws", {})
        self._profile = profile
        self._cost_of = cost_of
        self._are_own = are_own_costs

    def of(self, module: str, on: str, params: Mapping[str, Any]) -> AppLaw | None:
        """The law on a device of that kind with those parameters; None if unknown."""
        kind = str(self._modules[module]["kind"])
        feed = self._feed(module, on, params)
        own = params.get("laws", {}).get(kind)
        if own is not None:
            origin = "the pipeline's: a card that is not here" if on == SIMULATED else "given"
            return AppLaw(BatchLaw.given(own), feed, origin)
        if on == SIMULATED:
            return None
        if on == INLINE and kind in self._given:
            return AppLaw(BatchLaw.given(self._given[kind]), feed, "given")
        measured = self._measured(module, on, params)
        if measured is not None:
            return measured
        if on in OWN_MEMORY:
            return None
        cost = self._cost_of(module)
        if cost is None or on == INLINE:
            return None if cost is None else AppLaw(cost[0], feed, cost[1])
        way = cost[0].plus(_WAY.batch_ns, _WAY.pkt_ns)
        return AppLaw(way, feed, f"{cost[1]}, and the way there")

    def _measured(self, module: str, on: str, params: Mapping[str, Any]) -> AppLaw | None:
        if self._profile is None:
            return None
        spec = self._modules[module]
        device = self._profile.device_for(on, params)
        found = self._profile.law(str(spec["kind"]), spec.get("params", {}), device)
        # The pipeline's own costs include its tables; devices with their own memory have no other
        # law.
        if found is None or (self._are_own and not found[1] and on not in OWN_MEMORY):
            return None
        tables = "" if found[1] else ", with other tables"
        return AppLaw(found[0].law, found[0].feed, f"measured{tables}", found[0].max_batch_pkts)

    def _feed(self, module: str, on: str, params: Mapping[str, Any]) -> BatchLaw:
        """The worker's time to hand batches over; for a simulated device as for a thread."""
        if self._profile is not None:
            spec = self._modules[module]
            kind = CORES if on == SIMULATED else on
            device = self._profile.device_for(kind, {} if on == SIMULATED else params)
            found = self._profile.law(str(spec["kind"]), spec.get("params", {}), device)
            if found is not None:
                return found[0].feed
        return _FEED
