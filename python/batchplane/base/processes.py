# SPDX-License-Identifier: BSD-3-Clause
"""processes.py - starts further processes of this interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def safe_paths() -> Iterator[None]:
    """Interpreters started inside import no modules from the current folder."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
