# SPDX-License-Identifier: BSD-3-Clause
"""test_py_controller.py - what Python controllers may return, and how they may fail."""

from __future__ import annotations

import math
import signal
import threading
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from batchplane.base.problems import BadInput
from batchplane.control.file import is_controller_file, load_controller
from batchplane.control.python import MAX_HANGS, GuardedController, Nonsense, plain_decision

MODEL: dict[str, Any] = {
    "batch_limit_pkts": 32,
    "modules": [
        {"name": "in", "has_buffer": False},
        {"name": "acl_0", "has_buffer": True},
        {"name": "acl_1", "has_buffer": True},
        {"name": "held_back", "has_buffer": True},
    ],
    "flows": [],
    "tasks": [{"worker": 0}],
    "inputs": [
        {"module": 0, "is_queue": False, "size_pkts": 0},
        {"module": 2, "is_queue": True, "size_pkts": 8192, "holds_back": False},
        {"module": 3, "is_queue": True, "size_pkts": 512, "holds_back": True},
    ],
}


class Scripted:
    """Returns the given answers, or raises them."""

    def __init__(self, *answers: Any):
        self._answers = iter(answers)

    def step(self, _period: Any) -> Any:
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def change(module: int, trigger_pkts: int, **more: Any) -> dict[str, Any]:
    return {"module": module, "trigger_pkts": trigger_pkts, "reason": "python", **more}


def test_forms_of_a_decision() -> None:
    assert plain_decision(None, MODEL) == {"changes": []}
    assert plain_decision({"acl_1": 8}, MODEL) == {"changes": [change(2, 8)]}
    assert plain_decision({"acl_0": np.int64(32)}, MODEL) == {"changes": [change(1, 32)]}
    both = {"acl_1": {"trigger_pkts": 4, "age_limit_ns": 50_000}}
    assert plain_decision(both, MODEL) == {"changes": [change(2, 4, age_limit_ns=50_000)]}
    credits = {"changes": [], "credits": [{"module": "acl_1", "credit_pkts": 64}]}
    assert plain_decision(credits, MODEL)["credits"] == [{"module": 2, "credit_pkts": 64}]
    polls = {"changes": [], "polls": [{"task": 0, "poll_pkts": np.int64(8)}]}
    assert plain_decision(polls, MODEL)["polls"] == [{"task": 0, "poll_pkts": 8}]
    whole = {"changes": [{"module": 1, "trigger_pkts": 2, "reason": "push"}], "predicted_load": 0.5}
    assert plain_decision(whole, MODEL) == {
        "predicted_load": 0.5,
        "changes": [{"module": 1, "trigger_pkts": 2, "reason": "push"}],
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (7, "step() returned 7; expected None, {module: trigger} or a decision"),
        ({"acl_7": 1}, "there is no module 'acl_7' did you mean 'acl_0'?"),
        ({"in": 1}, "'in' has no buffer"),
        ({"acl_0": 33}, "the trigger of 'acl_0' is 33, expected 0 to 32"),
        ({"acl_0": -1}, "the trigger of 'acl_0' is -1, expected 0 to 32"),
        ({"acl_0": 1.5}, "the trigger of 'acl_0' is 1.5, expected a whole number"),
        ({"acl_0": True}, "the trigger of 'acl_0' is True, expected a whole number"),
        ({"acl_0": math.nan}, "the trigger of 'acl_0' is nan, expected a whole number"),
        ({"acl_0": "many"}, "the trigger of 'acl_0' is 'many', expected a whole number"),
        ({"changes": 3}, "changes is 3, expected a list"),
        ({"changes": [3]}, "a change is 3, expected {module, trigger_pkts}"),
        ({"changes": [{"module": 9, "trigger_pkts": 1}]}, "the number of a module is 9, expected 0 to 3"),
        ({"changes": [{"module": 1}]}, "the change of 'acl_0' has no trigger_pkts"),
        ({"changes": [{"module": 1, "trigger_pkts": 1}, {"module": "acl_0", "trigger_pkts": 2}]}, "'acl_0' is changed twice in one decision"),
        ({"changes": [], "chnges": []}, "a decision has no 'chnges'"),
        ({"changes": [], "credits": 3}, "credits is 3, expected a list"),
        ({"changes": [], "credits": [{"module": "acl_0"}]}, "a credit is {'module': 'acl_0'}, expected {module, credit_pkts}"),
        ({"changes": [], "credits": [{"module": "acl_7", "credit_pkts": 2}]}, "there is no module 'acl_7' did you mean 'acl_0'?"),
        ({"changes": [], "credits": [{"module": "acl_0", "credit_pkts": 9}]}, "'acl_0' is no queue between tasks: it has no credit"),
        ({"changes": [], "credits": [{"module": "acl_1", "credit_pkts": 9999}]}, "the credit of 'acl_1' is 9999, expected 1 to 8192"),
        ({"changes": [], "credits": [{"module": "acl_1", "credit_pkts": 0}]}, "the credit of 'acl_1' is 0, expected 1 to 8192"),
        ({"changes": [], "credits": [{"module": "held_back", "credit_pkts": 31}]}, "the credit of 'held_back' is 31, expected 32 to 512"),
        ({"changes": [], "credits": [{"module": "acl_1", "credit_pkts": 3}, {"module": 2, "credit_pkts": 4}]}, "'acl_1' is changed twice in one decision"),
        ({"changes": [], "polls": 3}, "polls is 3, expected a list"),
        ({"changes": [], "polls": [{"task": 0}]}, "a poll is {'task': 0}, expected {task, poll_pkts}"),
        ({"changes": [], "polls": [{"task": 1, "poll_pkts": 2}]}, "the number of a task is 1, expected 0 to 0"),
        ({"changes": [], "polls": [{"task": 0, "poll_pkts": 0}]}, "the poll of task 0 is 0, expected 1 to 32"),
        ({"changes": [], "polls": [{"task": 0, "poll_pkts": 33}]}, "the poll of task 0 is 33, expected 1 to 32"),
        ({"changes": [], "polls": [{"task": 0, "poll_pkts": 3}, {"task": 0, "poll_pkts": 4}]}, "task 0 is changed twice in one decision"),
        ({"acl_0": {"trigger_pkts": 1, "age_limit_ns": -5}}, "the age limit of 'acl_0' is -5, expected 0 to 1000000000000000"),
    ],
)  # fmt: skip
def test_nonsense_is_reported(answer: Any, message: str) -> None:
    with pytest.raises(Nonsense) as refused:
        plain_decision(answer, MODEL)
    assert str(refused.value) == message


def test_a_failing_step_is_noted_and_the_last_good_decision_kept() -> None:
    guard = GuardedController(Scripted({"acl_0": 4}, ZeroDivisionError("oh"), {"acl_0": 99}), MODEL)
    assert guard.decide({}, 10) == {"changes": [change(1, 4)]}
    assert guard.decide({}, 20) is None
    assert guard.decide({}, 30) is None
    assert guard.last_good == {"changes": [change(1, 4)]}
    first, second = guard.faults
    assert (first.period, first.now_ns, first.message) == (1, 20, "ZeroDivisionError: oh")
    assert "raise answer" in first.trace
    assert second.line() == (
        "the controller failed in period 2 (t=30.0 ns): the trigger of 'acl_0' is 99, expected "
        "0 to 32; the last good decision was kept"
    )


def test_objects_that_are_no_controllers() -> None:
    with pytest.raises(BadInput) as refused:
        GuardedController(3, MODEL)  # type: ignore[arg-type]
    assert refused.value.lines() == [
        "3 is not a controller (give a name such as 'fixed(8)', or an object with step(period))"
    ]


class Sleeper:
    """Hangs in the named periods; swallows every exception that it can.

    It sends the timer's signal itself, so that the limit expires without waiting.
    """

    def __init__(self, *hanging: int):
        self._hanging = hanging
        self.periods = 0

    def step(self, _period: Any) -> Any:
        self.periods += 1
        if self.periods in self._hanging:
            try:
                self.hang()
            except Exception:
                return {"acl_0": 31}
        return {"acl_0": self.periods}

    def hang(self) -> None:
        signal.raise_signal(signal.SIGALRM)
        threading.Event().wait(60)


def test_a_step_that_hangs_is_interrupted_and_reported() -> None:
    guard = GuardedController(Sleeper(2), MODEL, limit_s=60)
    assert guard.decide({}, 10) == {"changes": [change(1, 1)]}
    assert guard.decide({}, 20) is None
    assert guard.decide({}, 30) == {"changes": [change(1, 3)]}
    (fault,) = guard.faults
    assert fault.line() == (
        "the controller failed in period 1 (t=20.0 ns): step() did not return within 60 s; the "
        "last good decision was kept"
    )
    assert "hang" in fault.trace, "where it hung"
    assert not guard.is_given_up


def test_a_controller_that_keeps_hanging_is_no_longer_called() -> None:
    sleeper = Sleeper(*range(1, 100))
    guard = GuardedController(sleeper, MODEL, limit_s=60)
    assert [guard.decide({}, i) for i in range(6)] == [None] * 6
    assert guard.is_given_up and sleeper.periods == MAX_HANGS == len(guard.faults)
    assert "not be called again" in guard.faults[-1].message


def test_a_busy_loop_is_interrupted() -> None:
    class Spinner:
        def step(self, _period: Any) -> Any:
            while True:
                pass

    guard = GuardedController(Spinner(), MODEL, limit_s=0.05)
    assert guard.decide({}, 0) is None
    assert len(guard.faults) == 1


def decided_elsewhere(guard: GuardedController, *periods: str) -> list[Any]:
    """The decisions in a thread that signals do not reach."""
    answers: list[Any] = []
    thread = Thread(target=lambda: answers.extend(guard.decide(p, 0) for p in periods))
    thread.start()
    thread.join(60)
    return answers


class Waiter:
    """Hangs in the period `hang` until it is allowed to end."""

    def __init__(self) -> None:
        self.hangs, self.may_end = threading.Event(), threading.Event()

    def step(self, period: Any) -> Any:
        if period == "hang":
            self.hangs.set()
            self.may_end.wait(60)
        if period == "raise":
            raise ValueError(period)
        return {"acl_0": 7}


def test_in_other_threads_a_step_is_left_behind() -> None:
    waiter = Waiter()
    guard = GuardedController(waiter, MODEL, limit_s=0.05)
    answers = decided_elsewhere(guard, "hang")
    waiter.may_end.set()
    assert answers == [None]
    assert [fault.message for fault in guard.faults] == ["step() did not return within 0.05 s"]


def test_after_a_step_left_behind_the_others_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    waiter = Waiter()

    class Watched(Thread):
        """A thread whose limit expires when the step hangs, without waiting."""

        def join(self, timeout: float | None = None) -> None:
            assert timeout == 7
            while self.is_alive() and not waiter.hangs.is_set():
                super().join(0.01)
            waiter.hangs.clear()

    monkeypatch.setattr(threading, "Thread", Watched)
    guard = GuardedController(waiter, MODEL, limit_s=7)
    answers = decided_elsewhere(guard, "hang", "raise", "good")
    waiter.may_end.set()
    assert answers == [None, None, {"changes": [change(1, 7)]}]
    assert [fault.message for fault in guard.faults] == [
        "step() did not return within 7 s", "ValueError: raise",
    ]  # fmt: skip


def test_a_name_may_follow_the_file(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(
        "class A:\n    def step(self, period):\n        return {'acl_0': 1}\n"
        "class B:\n    def __init__(self, model):\n        self.model = model\n"
        "    def step(self, period):\n        return {'acl_1': len(self.model['tasks'])}\n"
        "class C: pass\n"
    )
    assert load_controller(f"{path}:A", MODEL).step({}) == {"acl_0": 1}
    assert load_controller(f"{path}:B", MODEL).step({}) == {"acl_1": 1}
    for word, told in (
        (str(path), "two.py:A or"), (f"{path}:AA", "did you mean 'A'"), (f"{path}:C", "no step()"),
        (f"{path}x:A", "no such file"),
    ):  # fmt: skip
        with pytest.raises(BadInput) as refused:
            load_controller(word, MODEL)
        assert told in refused.value.lines()[0]
    path.write_text("class A:\n    def step(self, period):\n        return {'acl_0': 1}\n")
    assert load_controller(path, MODEL).step({}) == {"acl_0": 1}, "the only one"
    assert is_controller_file("a/b.py") and is_controller_file("b.py:X")
    assert not is_controller_file("optimal") and not is_controller_file("fixed(8)")


def test_controllers_from_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "class C:\n    def step(self, period):\n        return {'acl_0': 3}\n"
        "def make_controller(model):\n    return C()\n"
    )
    assert load_controller(path, MODEL).step({}) == {"acl_0": 3}
    path.write_text("x = 1\n")
    with pytest.raises(BadInput, match=r"neither a class with step"):
        load_controller(path, MODEL)
    path.write_text("\ndef make_controller(model):\n    return model['nothing']\n")
    with pytest.raises(BadInput, match=r"mine.py:3: KeyError: 'nothing'"):
        load_controller(path, MODEL)
