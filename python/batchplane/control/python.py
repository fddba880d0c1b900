# SPDX-License-Identifier: BSD-3-Clause
"""python.py - controllers written in Python: what they may return, and how they may fail.

A controller is an object with `step(period)`. It returns None (nothing changes), a mapping from
modules to triggers, or a decision in the form of the extension. Every error in it is recorded with
its traceback and period; the last good decision stays in force. A step that hangs is interrupted.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..base.interrupts import Interrupted
from ..base.limits import AGE_LIMIT_NS
from ..base.problems import BadInput, Problem, suggestion
from ..base.units import short_duration
from .step_limit import StepTimeout, limited

STEP_LIMIT_S = 5.0
# A controller that hangs this often in a row would hang for ever.
MAX_HANGS = 3
_DECISION_KEYS = (
    *("changes", "credits", "polls", "moves", "flows"),
    *("predicted_load", "predicted_pps"),
)


class Controller(Protocol):
    """Anything that decides once per period."""

    def step(self, period: Any) -> Any:
        """What to change after this period."""


class Hold:
    """The controller `none`: all triggers stay as in the pipeline."""

    def step(self, _period: Any) -> None:
        """Changes nothing."""


NO_CONTROLLER = "none"


class Nonsense(ValueError):
    """A controller's answer is not a valid decision."""


@dataclass(frozen=True)
class ControllerFault:
    """A step that failed."""

    period: int  # counted from 0
    now_ns: int
    message: str
    trace: str

    def line(self) -> str:
        at = f"period {self.period} (t={short_duration(self.now_ns)})"
        return f"the controller failed in {at}: {self.message}; the last good decision was kept"


def plain_decision(answer: Any, model: Mapping[str, Any]) -> dict[str, Any]:
    """A controller's answer in the form of the extension. Raises Nonsense."""
    if answer is None:
        return {"changes": []}
    if not isinstance(answer, Mapping):
        raise Nonsense(
            f"step() returned {_told(answer)}; expected None, {{module: trigger}} or a decision"
        )
    names = [str(module["name"]) for module in model["modules"]]
    if "changes" not in answer:
        changes: Any = [_with_module(name, value) for name, value in answer.items()]
        rest: dict[str, Any] = {}
    else:
        unknown = [key for key in answer if key not in _DECISION_KEYS]
        if unknown:
            raise Nonsense(f"a decision has no '{unknown[0]}'")
        changes = answer["changes"]
        rest = {key: value for key, value in answer.items() if key != "changes"}
    if isinstance(changes, str) or not isinstance(changes, Sequence):
        raise Nonsense(f"changes is {_told(changes)}, expected a list")
    _check_rest(rest)
    plain = [_plain_change(change, model, names) for change in changes]
    rest |= {"moves": _plain_moves(rest.pop("moves"), model, names)} if "moves" in rest else {}
    if "credits" in rest:
        rest["credits"] = [_plain_credit(change, model, names) for change in rest["credits"]]
        _refuse_doubles([f"'{names[change['module']]}'" for change in rest["credits"]])
    if "polls" in rest:
        rest["polls"] = [_plain_poll(change, model) for change in rest["polls"]]
        _refuse_doubles([f"task {change['task']}" for change in rest["polls"]])
    _refuse_doubles([f"'{names[change['module']]}'" for change in plain])
    return {**rest, "changes": plain}


def _plain_moves(
    moves: Any, model: Mapping[str, Any], names: Sequence[str]
) -> list[dict[str, int]]:
    """Converts {module: worker} by name to the form of the extension."""
    if not isinstance(moves, Mapping):
        raise Nonsense(f"moves is {_told(moves)}, expected {{module: worker}}")
    plain = []
    for module, worker in moves.items():
        for name, known in ((module, names), (worker, model["workers"])):
            if name not in known:
                what = "module" if known is names else "worker"
                raise Nonsense(f"there is no {what} {_told(name)}")
        plain.append(
            {"module": names.index(module), "worker": list(model["workers"]).index(worker)}
        )
    return plain


def _check_rest(rest: Mapping[str, Any]) -> None:
    for key in ("credits", "polls"):
        if not isinstance(rest.get(key, []), list | tuple):
            raise Nonsense(f"{key} is {_told(rest[key])}, expected a list")
    flows = rest.get("flows") or []
    is_list = isinstance(flows, Sequence) and not isinstance(flows, str)
    if not is_list or not all(isinstance(row, Mapping) for row in flows):
        raise Nonsense(f"flows is {_told(flows)}, expected a list of {{state, ...}}, one per flow")
    for key in ("predicted_load", "predicted_pps"):
        value = rest.get(key, 0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise Nonsense(f"{key} is {_told(value)}, expected a number")


def _with_module(name: Any, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"module": name, **value}
    return {"module": name, "trigger_pkts": value}


def _plain_change(change: Any, model: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(change, Mapping) or "module" not in change:
        raise Nonsense(f"a change is {_told(change)}, expected {{module, trigger_pkts}}")
    number = _module_number(change["module"], names)
    label = names[number]
    if not model["modules"][number].get("has_buffer", True):
        raise Nonsense(f"'{label}' has no buffer")
    if "trigger_pkts" not in change:
        raise Nonsense(f"the change of '{label}' has no trigger_pkts")
    plain = {
        "module": number,
        "trigger_pkts": _whole(
            change["trigger_pkts"], f"the trigger of '{label}'", model["batch_limit_pkts"]
        ),
        "reason": str(change.get("reason", "python")),
    }
    if change.get("age_limit_ns") is not None:
        what = f"the age limit of '{label}'"
        plain["age_limit_ns"] = _whole(change["age_limit_ns"], what, AGE_LIMIT_NS.most)
    return plain


def _plain_credit(change: Any, model: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """How many packets each feeder of a queue may have waiting in it. A batch without room would
    hold back its feeders for ever."""
    if not isinstance(change, Mapping) or set(change) != {"module", "credit_pkts"}:
        raise Nonsense(f"a credit is {_told(change)}, expected {{module, credit_pkts}}")
    number = _module_number(change["module"], names)
    queues = {row["module"]: row for row in model["inputs"] if row["is_queue"]}
    if number not in queues:
        raise Nonsense(f"'{names[number]}' is no queue between tasks: it has no credit")
    what = f"the credit of '{names[number]}'"
    queue = queues[number]
    least = model["batch_limit_pkts"] if queue["holds_back"] else 1
    credit_pkts = _whole(change["credit_pkts"], what, queue["size_pkts"], least=least)
    return {"module": number, "credit_pkts": credit_pkts}


def _plain_poll(change: Any, model: Mapping[str, Any]) -> dict[str, int]:
    """How many packets a poll of the task may take."""
    if not isinstance(change, Mapping) or set(change) != {"task", "poll_pkts"}:
        raise Nonsense(f"a poll is {_told(change)}, expected {{task, poll_pkts}}")
    number = _whole(change["task"], "the number of a task", len(model["tasks"]) - 1)
    what = f"the poll of task {number}"
    poll_pkts = _whole(change["poll_pkts"], what, model["batch_limit_pkts"], least=1)
    return {"task": number, "poll_pkts": poll_pkts}


def _refuse_doubles(changed: Sequence[str]) -> None:
    for name in changed:
        if changed.count(name) > 1:
            raise Nonsense(f"{name} is changed twice in one decision")


def _module_number(module: Any, names: Sequence[str]) -> int:
    if not isinstance(module, str):
        return _whole(module, "the number of a module", len(names) - 1)
    if module not in names:
        raise Nonsense(f"there is no module '{module}' {suggestion(module, names)}".rstrip())
    return names.index(module)


def _whole(value: Any, what: str, most: int, least: int = 0) -> int:
    """A whole number in least..most. numpy's numbers are valid, true and false are not."""
    is_bool = isinstance(value, bool) or type(value).__name__ == "bool"
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if is_bool or not math.isfinite(number) or number != int(number):
        raise Nonsense(f"{what} is {_told(value)}, expected a whole number")
    if not least <= number <= most:
        raise Nonsense(f"{what} is {int(number)}, expected {least} to {most}")
    return int(number)


def _told(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 60 else f"{text[:57]}..."


def told_error(error: BaseException) -> str:
    """The error's type and its text, if the text can be printed."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__} (whose message cannot be printed)"


def told_trace() -> str:
    """The traceback of the error being handled."""
    try:
        return traceback.format_exc()
    except Exception:
        return "its traceback cannot be printed"


class GuardedController:
    """Calls a controller and protects the caller from its errors."""

    def __init__(
        self, controller: Controller, model: Mapping[str, Any], limit_s: float = STEP_LIMIT_S
    ):
        if not callable(getattr(controller, "step", None)):
            raise BadInput(
                Problem(
                    f"{_told(controller)} is not a controller",
                    fix="give a name such as 'fixed(8)', or an object with step(period)",
                )
            )
        self._controller = controller
        self._model = model
        self._limit_s = limit_s
        self._n_periods = 0
        self._n_hangs = 0  # in a row
        self.faults: list[ControllerFault] = []
        self.last_good: dict[str, Any] = {"changes": []}

    def model_is(self, model: Mapping[str, Any]) -> None:
        """Tells the controller that parts have moved: modules and tasks have new numbers."""
        self._model = model
        told = getattr(self._controller, "model_is", None)
        if callable(told):
            told(model)

    @property
    def is_given_up(self) -> bool:
        """Whether it hung too often and is no longer called."""
        return self._n_hangs >= MAX_HANGS

    def decide(self, period: Any, now_ns: int) -> dict[str, Any] | None:
        """The decision to apply, or None if the step failed: the current one stays in force."""
        number, self._n_periods = self._n_periods, self._n_periods + 1
        if self.is_given_up:
            return None
        try:
            answer = limited(self._controller.step, period, self._limit_s)
            self.last_good = plain_decision(answer, self._model)
        except StepTimeout:
            self._n_hangs += 1
            message = f"step() did not return within {self._limit_s:g} s"
            if self.is_given_up:
                message += f", {MAX_HANGS} times in a row: it will not be called again"
            self.faults.append(ControllerFault(number, now_ns, message, traceback.format_exc()))
            return None
        except (KeyboardInterrupt, Interrupted):
            raise
        except BaseException as error:  # neither sys.exit() nor an error may end the run
            is_nonsense = isinstance(error, Nonsense)
            message = str(error) if is_nonsense else told_error(error)
            self.faults.append(ControllerFault(number, now_ns, message, told_trace()))
            return None
        self._n_hangs = 0
        return self.last_good
