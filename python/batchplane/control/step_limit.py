# SPDX-License-Identifier: BSD-3-Clause
"""step_limit.py - ends steps of controllers that never return."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# The interrupt repeats: code that catches everything catches the first one.
_AGAIN_S = 0.2


class StepTimeout(BaseException):
    """A step took too long. Not an Exception, so that a controller's `except Exception` lets it
    through."""


def limited(step: Callable[[Any], Any], period: Any, limit_s: float) -> Any:
    """The answer of the step. Raises StepTimeout if it takes longer than `limit_s`.

    In the main thread the step is interrupted; a hanging C library call only once it returns.
    Signals do not reach other threads: there the step is left running.
    """
    if threading.current_thread() is threading.main_thread():
        with _interrupted_after(limit_s):
            return step(period)
    return _left_behind_after(limit_s, step, period)


@contextmanager
def _interrupted_after(limit_s: float) -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise StepTimeout

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_s, _AGAIN_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, old)


def _left_behind_after(limit_s: float, step: Callable[[Any], Any], period: Any) -> Any:
    answers: list[Any] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            answers.append(step(period))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit_s)
    if errors:
        raise errors[0]
    if not answers:
        raise StepTimeout
    return answers[0]
