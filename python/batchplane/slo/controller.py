# SPDX-License-Identifier: BSD-3-Clause
"""controller.py - a controller for a program that runs its own batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.problems import BadInput, Problem
from ..native.loader import load_native
from .model import whole_model

_SECTIONS = ("modules", "flows", "tasks", "inputs", "legs")


class Controller:
    """Chooses how many items each buffer collects, and how long one may wait there.

    `model` is in either form of docs/library.md, `settings` are those of docs/controllers.md. A
    step reads no clock: the same periods give the same decisions.
    """

    def __init__(
        self,
        model: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
        name: str = "optimal",
    ):
        self.settings = dict(settings or {})
        self._name = name
        self.model_is(model)

    def model_is(self, model: Mapping[str, Any]) -> None:
        """Starts again with another model."""
        native = load_native()
        try:
            self.model = whole_model(model)
            self._names = [str(row["name"]) for row in self.model["modules"]]
            self._native = native.Controller(self.model, self._name, self.settings)
            # The settings in force, as far as this controller has set them.
            self.buffers: dict[str, dict[str, int]] = {
                str(row["name"]): {"trigger_pkts": 0, "age_limit_ns": 0}
                for row in self.model["modules"]
                if row["has_buffer"]
            }
        except native.ConfigError as error:
            raise _bad_input(error) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadInput(Problem(f"the model is not whole: {error}", key="model")) from error

    def step(self, period: Mapping[str, Any]) -> dict[str, Any]:
        """The changes after this period: a decision in the form of docs/protocol.md, by names.

        Columns that are left out are zero, except what the controller knows itself: triggers and
        age limits that it has set, and the SLOs and costs of its model.
        """
        native = load_native()
        try:
            decision: dict[str, Any] = self._native.step(self._whole_period(period))
        except native.ConfigError as error:
            raise _bad_input(error) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadInput(Problem(f"the period is not whole: {error}", key="period")) from error
        for change in decision["changes"]:
            change["module"] = self._names[change["module"]]
            buffer = self.buffers[change["module"]]
            for key in buffer:
                buffer[key] = change.get(key, buffer[key])
        for change in decision["credits"]:
            change["module"] = self._names[change["module"]]
        # These keys are only reported if they contain something.
        for key in ("credits", "polls", "moves"):
            if not decision[key]:
                del decision[key]
        return decision

    def explain(self) -> dict[str, Any]:
        """The reasons for the last decision, as a daemon's `explain` answers."""
        explained: dict[str, Any] = self._native.explain()
        return explained

    def _whole_period(self, period: Mapping[str, Any]) -> dict[str, Any]:
        whole = dict(period)
        for key in ("now_ns", "period_ns", "modules", "flows", "tasks"):
            if key not in period:
                raise BadInput(Problem("is missing", key=f"period.{key}"))
        for section in _SECTIONS:
            if section in period:
                self._check_columns(section, period[section])
        in_force = [self.buffers.get(name, {}) for name in self._names]
        known = {
            key: [buffer.get(key, 0) for buffer in in_force]
            for key in ("trigger_pkts", "age_limit_ns")
        }
        slos = [row.get("slo_ns", 0) for row in self.model["flows"]]
        whole["modules"] = {**known, **period["modules"]}
        whole["flows"] = {"slo_ns": slos, **period["flows"]}
        if "inputs" in period:
            held = whole["modules"].get("held_pkts", [0] * len(self._names))
            ring_pkts = period["inputs"].get("ring_pkts", [0] * len(self.model["inputs"]))
            waiting = self._waiting(held, whole["modules"]["trigger_pkts"], ring_pkts)
            whole["inputs"] = {**waiting, **period["inputs"]}
        return whole

    def _waiting(
        self, held_pkts: Sequence[int], triggers_pkts: Sequence[int], rings_pkts: Sequence[int]
    ) -> dict[str, Any]:
        """If a program has no ring before its buffers, items beyond their triggers count as waiting
        there; more than a ring of them means that the worker is overloaded."""
        default_pkts = load_native().DEFAULT_RING_PKTS  # of inputs that tell no ring size
        beyond = [0] * len(self.model["tasks"])
        for module, held, trigger in zip(
            self.model["modules"], held_pkts, triggers_pkts, strict=True
        ):
            beyond[module["task"]] += max(0, int(held) - int(trigger))
        beyond = [beyond[row["task"]] for row in self.model["inputs"]]
        rings = [int(ring_pkts) or default_pkts for ring_pkts in rings_pkts]
        return {
            "waiting_pkts": [min(pkts, ring) for pkts, ring in zip(beyond, rings, strict=True)],
            "backlog_pkts": [max(0, pkts - ring) for pkts, ring in zip(beyond, rings, strict=True)],
        }

    def _check_columns(self, section: str, columns: Mapping[str, Any]) -> None:
        n_rows = len(self.model.get(section, ()))
        for name, values in columns.items():
            if len(values) != n_rows:
                message = f"has {len(values)} rows, the model has {n_rows}"
                raise BadInput(Problem(message, key=f"period.{section}.{name}"))


def _bad_input(error: Exception) -> BadInput:
    return BadInput([Problem(message, key=where, fix=fix) for message, where, fix in error.args[0]])
