# SPDX-License-Identifier: BSD-3-Clause
"""interrupts.py - Ctrl-C and SIGTERM as an exception that is not treated as an error."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM: a normal end. Not an Exception, so that error handlers let it through."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns Ctrl-C and SIGTERM into Interrupted inside, and restores the old handlers after."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    old = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
