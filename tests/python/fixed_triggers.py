# SPDX-License-Identifier: BSD-3-Clause
"""fixed_triggers.py - the best that fixed triggers can do for a pipeline of one task, by search.

The oracle of controllers: it knows no model, only the simulator. Modules of one class (the same
name but for numbers, the same costs, the same promises) have the same trigger.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batchplane.native.loader import make_simulation

SETTLE_NS, MEASURED_NS = 1_000_000, 8_000_000
ALLOWED = 0.05  # of packets late: SLOs are about the 95th percentile
COARSE = (0, 2, 4, 6, 8, 12, 16, 24, 32)
MAX_GRID = 250
STEPS = (1, -1, 2, -2, 4, -4, 8, -8, 16, -16)
Triggers = tuple[int, ...]  # by class


@dataclass(frozen=True)
class Point:
    """What triggers carry, and the p95 of the flow that waits longest."""

    triggers: Triggers
    rate_pps: float
    p95_ns: float
    by_flow_ns: tuple[int, ...]


class FixedTriggers:
    """Tries triggers on one pipeline; each vector once. `watched`: flows whose delay counts."""

    def __init__(self, spec: Mapping[str, Any], watched: Sequence[str] = ()) -> None:
        self._spec = {**spec, "flows": [dict(flow) for flow in spec["flows"]]}
        for flow in self._spec["flows"]:
            flow["delay_slo_ns"] = 0
        model = make_simulation(self._spec).model()
        self.flows = [flow["name"] for flow in model["flows"]]
        self._watched = [i for i, f in enumerate(self.flows) if not watched or f in watched]
        classes: dict[Any, list[int]] = {}
        costs = self._spec["simulation"]["costs"]
        crossed = {
            module for i in self._watched for module in self._spec["flows"][i]["path"]
        }  # fmt: skip
        for m, row in enumerate(model["modules"]):
            if row["is_controlled"]:
                name = row["name"]
                stem = re.sub(r"\d+", "", name)
                cost = costs.get(name, {})
                key = (stem, repr(sorted(cost.items())), name in crossed)
                classes.setdefault(key, []).append(m)
        self.classes = list(classes.values())
        self._seen: dict[Triggers, Point] = {}

    def decision(self, triggers: Triggers) -> dict[str, Any]:
        """As the simulator takes it."""
        return {
            "changes": [
                {"module": m, "trigger_pkts": trigger}
                for modules, trigger in zip(self.classes, triggers, strict=True)
                for m in modules
            ]
        }

    def measure(self, triggers: Triggers) -> Point:
        """Rate and delays once settled."""
        if triggers not in self._seen:
            sim = make_simulation(self._spec)
            sim.apply(self.decision(triggers))
            sim.run_until(SETTLE_NS)
            sim.period()
            sim.run_until(SETTLE_NS + MEASURED_NS)
            period = sim.period()
            delays = tuple(int(period["flows"]["delay_ns"][i]) for i in self._watched)
            rate = sum(period["tasks"]["in_pkts"]) * 1e9 / period["period_ns"]
            self._seen[triggers] = Point(triggers, rate, max(delays), delays)
        return self._seen[triggers]

    def alike(self, trigger: int) -> Point:
        """All classes with this trigger."""
        return self.measure((trigger,) * len(self.classes))

    def explore(self) -> None:
        """A grid over classes, as fine as their number allows."""
        n = len(self.classes)
        sizes = next(
            (COARSE[::step] for step in (1, 2, 4) if len(COARSE[::step]) ** n <= MAX_GRID), ()
        )
        for triggers in itertools.product(sizes, repeat=n) if sizes else ():
            self.measure(triggers)
        for trigger in range(33):
            self.alike(trigger)

    def best(self, slo_ns: float) -> Point | None:
        """The highest rate within the SLO, refined from what was explored; None where nothing keeps it."""
        kept = [point for point in self._seen.values() if point.p95_ns <= slo_ns]
        if not kept:
            return None
        best = max(kept, key=lambda point: point.rate_pps)
        improves = True
        while improves:
            improves = False
            for near in self._around(best.triggers):
                point = self.measure(near)
                if point.p95_ns <= slo_ns and point.rate_pps > best.rate_pps * 1.0005:
                    best, improves = point, True
                    break
        return best

    def _around(self, triggers: Triggers) -> Iterator[Triggers]:
        """One class moved, or one up and one down."""
        n = len(triggers)

        def moved(at: Triggers, c: int, step: int) -> Triggers | None:
            value = at[c] + step
            return (*at[:c], value, *at[c + 1 :]) if 0 <= value <= 32 and value != 1 else None

        for c, step in itertools.product(range(n), STEPS):
            if (one := moved(triggers, c, step)) is not None:
                yield one
        if n > 6:
            return
        for c, d in itertools.permutations(range(n), 2):
            for up, down in itertools.product((1, 2, 4), (-1, -2, -4, -8, -16, -32)):
                one = moved(triggers, c, up)
                down = max(down, -triggers[d])
                two = moved(one, d, down) if one else None
                if two is not None and down < 0:
                    yield two
