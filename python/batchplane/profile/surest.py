# SPDX-License-Identifier: BSD-3-Clause
"""surest.py - measures a profile again where it is in doubt, and takes the surest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ..base.problems import BatchplaneError

_TRIES = 2  # a busy moment is likely over after the first


def surest(
    measure: Callable[[], dict[str, Any]],
    doubt_of: Callable[[Mapping[str, Any]], float],
    tell: Callable[[dict[str, Any]], None] = lambda _document: None,
) -> dict[str, Any]:
    """The document with the least doubt; up to 1 is sure enough. `tell` is called with what is
    measured again. Only a first measurement that fails is an error."""
    document = measure()
    for _ in range(_TRIES - 1):
        if doubt_of(document) <= 1:
            break
        tell(document)
        with suppress(BatchplaneError):
            document = min(document, measure(), key=doubt_of)
    return document
