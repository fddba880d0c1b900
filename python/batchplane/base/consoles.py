# SPDX-License-Identifier: BSD-3-Clause
"""consoles.py - where commands print: results to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

# Files and pipes have no terminal width to cut lines to.
_PLAIN_WIDTH = 240


def out() -> Console:
    """For results."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH)


def errors() -> Console:
    """For warnings, errors and progress."""
    return Console(
        stderr=True, highlight=False, width=None if sys.stderr.isatty() else _PLAIN_WIDTH
    )


def print_json(data: Any, is_one_line: bool = False) -> None:
    """JSON on standard output, as programs want it."""
    print(json.dumps(data, indent=None if is_one_line else 2), flush=True)
