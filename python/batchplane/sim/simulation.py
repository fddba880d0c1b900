# SPDX-License-Identifier: BSD-3-Clause
"""simulation.py - a pipeline in virtual time, from Python: no DPDK, no daemon, no root.

    from batchplane import Simulation
    sim = Simulation("gateway", nexthops=4, rate_pps=2_000_000)
    result = sim.run("1s", controller="fixed(8)")
    print(result.flows, result.module_periods)

Use your own controller, either as an object with step(period), or period by period:

    for period in sim.steps("10ms", duration="1s"):
        sim.apply({"acl_0_0": 8})
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem
from ..base.promise import DEFAULT_PERCENTILE
from ..changes.events import pipeline_names
from ..changes.scenario import Scenario
from ..changes.settings import parse_settings
from ..control.python import (
    NO_CONTROLLER,
    Controller,
    GuardedController,
    Hold,
    plain_decision,
)
from ..lang.canonical import Document
from ..lang.pipeline import Pipeline
from ..native.loader import NativeSimulation, make_simulation
from .edits import edits_of_action, edits_of_sets
from .prepare import Inputs, duration_ns, prepare
from .replay import Replay
from .result import PeriodLog, Result
from .spec import Machine
from .traffic import Traffic

SHOWN = ("runtime", "buffers", "flows", "drops", "graph", "generators", "tables")
Progress = Callable[[float], None]


class Simulation:
    """One pipeline in virtual time. Each run continues where the one before ended."""

    def __init__(
        self,
        pipeline: str | Path | Pipeline | Document | dict[str, Any] | Inputs,
        traffic: str | Path | Traffic | None = None,
        costs: Any = None,
        *,
        scenario: str | Path | Scenario | None = None,
        sets: Sequence[str] = (),
        machine: Machine | None = None,
        run_order: str | None = None,
        seed: int = 1,
        **params: Any,
    ):
        if not isinstance(pipeline, Inputs):
            pipeline = prepare(
                pipeline,
                traffic,
                costs,
                overrides={key: _word(value) for key, value in params.items()},
                scenario=scenario,
                sets=sets,
                machine=machine,
                run_order=run_order,
                seed=seed,
            )
        self.inputs = pipeline
        self._native: NativeSimulation = make_simulation(pipeline.spec)
        self.model: dict[str, Any] = self._native.model()
        self._graph_number = self._native.graph_number
        self._actions = list(pipeline.actions)
        self.events: list[str] = []
        self.warnings: list[str] = []
        for edit in pipeline.edits:
            self._edit(edit, "set")

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return str(self.inputs.document.pipeline.get("name", "pipeline"))

    @property
    def now_ns(self) -> int:
        """Virtual time since the start."""
        return int(self._native.now_ns)

    def show(self, what: str = "all") -> Any:
        """What `batchplane show` shows of a daemon."""
        if what != "all":
            try:
                return self._native.show(what)
            except ValueError as error:
                raise BadInput(Problem(_first_words(error), "show")) from error
        return {name: self._native.show(name) for name in SHOWN}

    def set(self, *words: str) -> None:
        """Changes settings as `batchplane set` does: 'acl_0_0.trigger=8', 'load.rate=2M'."""
        sets = parse_settings(words, pipeline_names(self.inputs.document.pipeline))
        for edit in edits_of_sets(sets):
            self._edit(edit, "set")

    def apply(self, decision: Any) -> None:
        """Applies a decision: {module: trigger}, or any answer of a controller."""
        try:
            self._native.apply(plain_decision(decision, self.model))
        except ValueError as error:
            raise BadInput(Problem(_first_words(error), "decision")) from error
        self._look_at_model()

    def move(self, parts: Mapping[str, str]) -> None:
        """Moves modules, each with what only it feeds, to workers, as `batchplane move` does."""
        try:
            self._native.move(dict(parts))
        except Exception as error:
            raise BadInput(Problem(_first_words(error), "move")) from error
        self._look_at_model()

    def _look_at_model(self) -> bool:
        """Updates the model if parts have moved; returns whether they have."""
        if self._native.graph_number == self._graph_number:
            return False
        self._graph_number = self._native.graph_number
        self.model = self._native.model()
        return True

    def record(self, packets: int = 0, firings: int = 0) -> None:
        """Records the paths of the next `packets` packets and the next `firings` firings."""
        self._native.record(packets=packets, firings=firings)

    def recorded(self) -> dict[str, dict[str, Any]]:
        """The recorded data, as numpy columns."""
        return self._native.recorded()

    def _edit(self, edit: Mapping[str, Any], where: str) -> None:
        try:
            self._native.edit(edit)
        except ValueError as error:
            raise BadInput(Problem(_first_words(error), where)) from error

    # --- going on -------------------------------------------------------------------------------

    def advance(self, until_ns: int) -> bool:
        """Runs until this time, with the scenario's events; true if an event changed an SLO."""
        moved = False
        while self._actions and self._actions[0].at_ns <= until_ns:
            action = self._actions.pop(0)
            self._native.run_until(max(action.at_ns, self.now_ns))
            edits, warnings = edits_of_action(action, self.inputs.spec)
            try:
                for edit in edits:
                    self._edit(edit, action.text)
                    moved = moved or "slo_ns" in edit
            except BadInput as error:
                # Like a daemon: it reports the error, and the rest of the scenario goes on.
                at = f"{action.at_ns / 1e9:g} s"
                self.warnings += [f"{at}: {line}; skipped" for line in error.lines()]
                continue
            self.events.append(f"{action.at_ns / 1e9:g} s: {action.text}")
            self.warnings += warnings
            if moved:
                # A changed SLO takes effect at once, not at the end of the period.
                return True
        self._native.run_until(until_ns)
        return False

    def steps(
        self, period: str | int = "10ms", duration: str | int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yields period after period; `apply` in between decides for the next one."""
        step_ns = duration_ns(period, "period")
        length_ns = None if duration is None else duration_ns(duration, "duration")
        end_ns = None if length_ns is None else self.now_ns + length_ns
        next_ns = self.now_ns + step_ns
        while end_ns is None or self.now_ns < end_ns:
            target_ns = next_ns if end_ns is None else min(next_ns, end_ns)
            # An SLO that changes exactly at a period's end does so within that period.
            if not self.advance(target_ns) or self.now_ns >= next_ns:
                next_ns += step_ns
            yield self._native.period()

    def run(
        self,
        duration: str | int | None = None,
        controller: str | Controller = NO_CONTROLLER,
        period: str | int = "10ms",
        progress: Progress | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        record_packets: int = 0,
        record_firings: int = 0,
        is_drained: bool = False,
    ) -> Result:
        """Runs for some virtual time under a controller, given by name or as an object.

        `none` leaves the triggers as the pipeline has them; `null` sets all of them to 0.

        `is_drained` stops the traffic at the end and lets all packets inside leave, as a daemon
        does when it stops; the simulation cannot be used after that.
        """
        length_ns = self._length_ns(duration)
        guard = self._choose(controller, settings or {})
        if record_packets or record_firings:
            self.record(record_packets, record_firings)
        log = PeriodLog(self.model)
        first, start_ns, start_s = self.show(), self.now_ns, time.process_time()
        step_ns = duration_ns(period, "period")
        next_ns = start_ns + step_ns
        end_ns = start_ns + length_ns
        replay = Replay(self._native, duration is None and self.inputs.is_captured)
        while self.now_ns < end_ns:
            is_moved = self.advance(min(next_ns, end_ns))
            end_ns = replay.end_ns(end_ns, next_ns)
            if not is_moved or self.now_ns >= next_ns:
                next_ns += step_ns
            self._step(guard, log)
            if self._look_at_model():
                log.model_is(self.model)
                if guard is not None:
                    guard.model_is(self.model)
            self._native.rest_recorder()
            if progress is not None:
                progress(min(1.0, (self.now_ns - start_ns) / length_ns))
        cpu_s = time.process_time() - start_s
        last = self.show()
        recorded = self.recorded() if record_packets or record_firings else {}
        report = self._drained() if is_drained else {"balance": last["runtime"]["balance"]}
        if is_drained:
            self.warnings += replay.warnings()
        return Result(
            pipeline=self.name,
            controller=controller if isinstance(controller, str) else type(controller).__name__,
            seed=int(self.inputs.spec["simulation"]["seed"]),
            period_ns=step_ns,
            first=first,
            last=last,
            report=report,
            model=self.model,
            log=log,
            cpu_s=cpu_s,
            percentile=float((settings or {}).get("percentile", DEFAULT_PERCENTILE)),
            faults=[] if guard is None else guard.faults,
            events=self.events,
            warnings=self.warnings,
            recorded=recorded,
        )

    def _length_ns(self, duration: str | int | None) -> int:
        if duration is not None:
            return duration_ns(duration, "duration")
        if self.inputs.duration_ns is not None:
            return self.inputs.duration_ns
        last_ns = max((action.at_ns for action in self._actions), default=0)
        return last_ns - min(self.now_ns, last_ns) + 1_000_000_000

    def _choose(
        self, controller: str | Controller, settings: Mapping[str, Any]
    ) -> GuardedController | None:
        if controller == NO_CONTROLLER:
            return GuardedController(Hold(), self.model)
        if not isinstance(controller, str):
            return GuardedController(controller, self.model)
        try:
            self._native.set_controller(controller, dict(settings))
        except Exception as error:
            raise BadInput(Problem(_first_words(error), "controller", controller)) from error
        return None

    def _step(self, guard: GuardedController | None, log: PeriodLog) -> None:
        if guard is None:
            log.add(*self._native.step())
            return
        period = self._native.period()
        decision = guard.decide(period, self.now_ns)
        if decision is not None:
            self._native.apply(decision)
        log.add(period, decision)

    def _drained(self) -> dict[str, Any]:
        """Stops the traffic, lets all packets inside leave, and returns the balance."""
        off = {name: {"is_on": False} for name in self._generator_names()}
        self._native.edit({"generators": off})
        self._native.drain()
        balance = self._native.show("runtime")["balance"]
        if balance.get("held_pkts") or balance.get("in_flight_pkts"):
            self.warnings.append(self._stuck_text(balance))
        return {"balance": balance}

    def _generator_names(self) -> list[str]:
        return [str(row["name"]) for row in self._native.show("generators")]

    def _stuck_text(self, balance: Mapping[str, Any]) -> str:
        buffers = self._native.show("buffers")["buffers"]
        holding = [str(row["module"]) for row in buffers if row["held_pkts"]]
        inside = balance.get("held_pkts", 0) + balance.get("in_flight_pkts", 0)
        at = f" in {', '.join(holding[:4])}" if holding else ""
        return (
            f"the pipeline does not drain: after the traffic ended {inside} packets never left, "
            f"still inside{at}"
        )


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_words(error: Exception) -> str:
    """The message of an extension's error: (message, where, fix), or a list of those."""
    found = error.args[0] if error.args else error
    if isinstance(found, list) and found:
        found = found[0]
    if isinstance(found, tuple):
        message, _, fix = (str(part) for part in found)
        return f"{message} ({fix})" if fix else message
    return str(found)
