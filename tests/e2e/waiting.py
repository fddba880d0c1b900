# SPDX-License-Identifier: BSD-3-Clause
"""waiting.py - waits for a condition with a deadline, instead of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str, timeout_s: float = 180.0) -> T:
    """Checks until the answer is true; returns it. Fails the test after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what} (last: {answer!r})")
        time.sleep(0.02)


def is_soon(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Whether the condition becomes true within the time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
