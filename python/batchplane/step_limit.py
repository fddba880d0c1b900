# SPDX-License-Identifier: BSD-3-Clause
"""step_limit.py - an end for steps of controllers that never return."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# Again and again: code that catches everything catches the first one.
_AGAIN_S = 0.2


class StepTimeout(BaseException):
    """A step took too long. No Exception: `except Exception` of a controller lets it through."""


@contextmanager
def step_limit(limit_s: float) -> Iterator[None]:
    """Raises StepTimeout in what runs inside for longer than `limit_s`.

    What hangs within one call of a C library is interrupted when that call returns.
    """
    is_main = threading.current_thread() is threading.main_thread()
    with _by_signal(limit_s) if is_main else _by_watchdog(limit_s):
        yield


@contextmanager
def _by_signal(limit_s: float) -> Iterator[None]:
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


@contextmanager
def _by_watchdog(limit_s: float) -> Iterator[None]:
    """Signals reach the main thread only: elsewhere another thread raises it in this one."""
    is_done = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(threading.get_ident(), limit_s, is_done.wait), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _watch(thread_id: int, limit_s: float, wait: Callable[[float], bool]) -> None:
    wait_s = limit_s
    while not wait(wait_s):
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
        raise_in(ctypes.c_ulong(thread_id), ctypes.py_object(StepTimeout))
        wait_s = _AGAIN_S
