# SPDX-License-Identifier: BSD-3-Clause
"""fixed_triggers.py - searches the best fixed triggers for a pipeline of one task.

This is the oracle for controllers: it uses no model, only the simulator. Modules of one class (the
same name except for numbers, the same costs, the same SLOs) have the same trigger, or triggers that
decrease evenly from the first to the last, as equal ones would all fire in the same run.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batchplane.native.loader import make_simulation

SETTLE_NS, MEASURED_NS = 1_000_000, 8_000_000
COARSE = (0, 2, 4, 6, 8, 12, 16, 24, 32)
MAX_GRID = 250
STARTS = 3
MANY_CLASSES, TRIES = 6, 200
STEPS = (1, -1, 2, -2, 4, -4, 8, -8, 16, -16)
SPREADS = (0, 2, 4, 8)
Triggers = tuple[int, ...]  # by class; the last number: the decrease within a class


@dataclass(frozen=True)
class Point:
    """The rate under some triggers, and the p95 of the slowest flow."""

    triggers: Triggers
    rate_pps: float
    p95_ns: float
    by_flow_ns: tuple[int, ...]
    busy: float  # share of the time


Value = Callable[[Point], float]  # the higher, the better


def rate(point: Point) -> float:
    """The objective if the input is always full."""
    return point.rate_pps


def _shares(n: int) -> list[float]:
    """Positions from the first of n to the last, as fractions."""
    return [i / (n - 1) for i in range(n)] if n > 1 else [0.5]


def _is_better(value: float, best: float) -> bool:
    return value > best + 0.0005 * abs(best)


class FixedTriggers:
    """Tries triggers on one pipeline, each vector once. `watched`: flows whose delay counts."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        watched: Sequence[str] = (),
        settle_ns: int = SETTLE_NS,
        measured_ns: int = MEASURED_NS,
    ) -> None:
        self._settle_ns, self._measured_ns = settle_ns, measured_ns
        self.batch_pkts = int(spec["engine"]["batch_pkts"])
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
        """The triggers in the form of the simulator."""
        *of_classes, spread = triggers
        return {
            "changes": [
                {"module": m, "trigger_pkts": self._within(trigger, spread * (0.5 - share))}
                for modules, trigger in zip(self.classes, of_classes, strict=True)
                for m, share in zip(modules, _shares(len(modules)), strict=True)
            ]
        }

    def _within(self, trigger: int, more: float) -> int:
        return min(max(trigger + round(more), 2), self.batch_pkts) if trigger else 0

    def measure(self, triggers: Triggers) -> Point:
        """Rate and delays once settled."""
        if triggers not in self._seen:
            sim = make_simulation(self._spec)
            sim.apply(self.decision(triggers))
            sim.run_until(self._settle_ns)
            sim.period()
            sim.run_until(self._settle_ns + self._measured_ns)
            period = sim.period()
            delays = tuple(int(period["flows"]["delay_ns"][i]) for i in self._watched)
            rate_pps = sum(period["tasks"]["in_pkts"]) * 1e9 / period["period_ns"]
            busy = sum(period["tasks"]["busy_ns"]) / period["period_ns"]
            self._seen[triggers] = Point(triggers, rate_pps, max(delays), delays, busy)
        return self._seen[triggers]

    def alike(self, trigger: int, spread: int = 0) -> Point:
        """All classes with this trigger."""
        return self.measure((*(trigger,) * len(self.classes), spread))

    def _spreads(self) -> Sequence[int]:
        return SPREADS if max(map(len, self.classes)) > 1 else (0,)

    def explore(self) -> None:
        """Measures a grid over classes, as fine as their number allows."""
        n = len(self.classes)
        coarse = [pkts for pkts in COARSE if pkts <= self.batch_pkts]
        sizes = next(
            (coarse[::step] for step in (1, 2, 4) if len(coarse[::step]) ** n <= MAX_GRID), []
        )
        for triggers in itertools.product(sizes, repeat=n) if sizes else ():
            self.measure((*triggers, 0))
        for trigger, spread in itertools.product(range(self.batch_pkts + 1), self._spreads()):
            self.alike(trigger, spread)

    def all_kept(self, slo_ns: float, value: Value = rate) -> list[Point]:
        """The measured points that meet the SLO, the best first."""
        kept = (point for point in self._seen.values() if point.p95_ns <= slo_ns)
        return sorted(kept, key=value, reverse=True)

    def best(self, slo_ns: float, value: Value = rate) -> Point | None:
        """The best point within the SLO, refined from the measured ones; None if none meets it."""
        starts = self.all_kept(slo_ns, value)[:STARTS]
        if len(self.classes) > MANY_CLASSES:
            return self.best_of_many(slo_ns, (), TRIES, value=value)
        refined = (self._refined(start, slo_ns, value) for start in starts)
        return max(refined, key=value, default=None)

    def _refined(self, best: Point, slo_ns: float, value: Value) -> Point:
        improves = True
        while improves:
            improves = False
            for near in self._around(best.triggers):
                point = self.measure(near)
                if point.p95_ns <= slo_ns and _is_better(value(point), value(best)):
                    best, improves = point, True
                    break
        return best

    def best_of_many(
        self,
        slo_ns: float,
        starts: Iterable[Triggers],
        tries: int,
        seed: int = 1,
        value: Value = rate,
    ) -> Point | None:
        """The same for so many classes that not all neighbours can be tried: the best start, then
        random changes of one class, or of one up and one down."""
        for triggers in starts:
            self.measure(triggers)
        kept = self.all_kept(slo_ns, value)
        if not kept:
            return None
        best = kept[0]
        rng = random.Random(seed)
        classes = range(len(self.classes))
        for _ in range(tries):
            c = rng.choice(classes)
            near = self._moved(best.triggers, c, rng.choice(STEPS))
            if near and len(classes) > 1 and rng.random() < 0.5:
                other = rng.choice([d for d in classes if d != c])
                towards = 1 if near[c] < best.triggers[c] else -1
                near = self._moved(near, other, towards * rng.choice((1, 2, 4, 8)))
            if near is None:
                continue
            point = self.measure(near)
            if point.p95_ns <= slo_ns and _is_better(value(point), value(best)):
                best = point
        return best

    def _moved(self, at: Triggers, c: int, step: int) -> Triggers | None:
        value = at[c] + step
        is_trigger = 0 <= value <= self.batch_pkts and value != 1
        return (*at[:c], value, *at[c + 1 :]) if is_trigger else None

    def _around(self, triggers: Triggers) -> Iterator[Triggers]:
        """Neighbours: another spread, one class changed, or one up and one down."""
        n = len(self.classes)
        for spread in self._spreads():
            yield (*triggers[:-1], spread)
        steps = range(-self.batch_pkts, self.batch_pkts + 1)
        for step, c in itertools.product(sorted(steps, key=abs)[1:], range(n)):
            if (one := self._moved(triggers, c, step)) is not None:
                yield one
        for c, d in itertools.permutations(range(n), 2):
            for up, down in itertools.product((1, 2, 4), (-1, -2, -4, -8, -16, -32)):
                one = self._moved(triggers, c, up)
                down = max(down, -triggers[d])
                two = self._moved(one, d, down) if one else None
                if two is not None and down < 0:
                    yield two
