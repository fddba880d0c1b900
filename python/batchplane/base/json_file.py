# SPDX-License-Identifier: BSD-3-Clause
"""json_file.py - reads JSON that people wrote, and reports a mistake in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .problems import BadInput, Problem

MOST_INTEGER = (1 << 63) - 1


def read_json(path: Path, what: str = "valid JSON", missing: str = "") -> Any:
    """The content of the file. Raises BadInput; `missing` is the fix if there is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInput(Problem("there is no such file", str(path), fix=missing)) from error
    except UnicodeDecodeError as error:
        raise BadInput(Problem(f"this is not {what}: {error}", str(path))) from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise BadInput(Problem(f"cannot be read: {error}", str(path))) from error
    return parse_json(text, str(path), what)


def parse_json(text: str, file: str, what: str = "valid JSON") -> Any:
    """Parses the text. Numbers must be finite and fit 64 bits, as all readers expect."""
    try:
        return json.loads(text, parse_constant=_refused, parse_int=_integer, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise BadInput(Problem(f"this is not {what}: {error}", f"{file}:{error.lineno}")) from error
    except ValueError as error:
        raise BadInput(Problem(f"this is not {what}: {error}", file)) from error
    except RecursionError as error:
        raise BadInput(Problem(f"this is not {what}: nested too deeply", file)) from error


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -MOST_INTEGER - 1 <= int(digits) <= MOST_INTEGER:
        raise ValueError(f"the integer {digits[:40]} does not fit 64 bits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return value
