# SPDX-License-Identifier: BSD-3-Clause
"""names.py - lists of controllers as people write them."""

from __future__ import annotations

import re

_CONTROLLER = re.compile(r"[^,()]+(\([^()]*\))?")


def split_controllers(text: str) -> list[str]:
    """Splits 'fixed(8), max'; commas inside brackets do not separate."""
    parts = [match[0].strip() for match in _CONTROLLER.finditer(text)]
    return [part for part in parts if part]
