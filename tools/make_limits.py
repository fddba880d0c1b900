#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_limits.py - writes the limits of src/spec/limits.h for Python.

usage: python3 tools/make_limits.py
Writes python/batchplane/base/limits.py; a test fails while it differs from the header.
"""

import re
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
HEADER = TREE / "src/spec/limits.h"
MODULE = TREE / "python/batchplane/base/limits.py"
HEAD = '''# SPDX-License-Identifier: BSD-3-Clause
"""limits.py - the least and the most of each number in a pipeline: src/spec/limits.h for Python.

Made by tools/make_limits.py; change the header.
"""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """Both belong to what is allowed."""

    least: int
    most: int


'''
_LINE = re.compile(r"^inline constexpr Limit k(\w+)\{([\d']+), ([\d']+)\};", re.MULTILINE)


def module_text() -> str:
    """The Python module for the current header."""
    found = _LINE.findall(HEADER.read_text(encoding="utf-8"))
    lines = []
    for name, *bounds in found:
        constant = re.sub(r"(?<=.)(?=[A-Z])", "_", name).upper()
        least, most = (f"{int(bound.replace(chr(39), '')):_}" for bound in bounds)
        lines.append(f"{constant} = Limit({least}, {most})\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    MODULE.write_text(module_text(), encoding="utf-8")
