# SPDX-License-Identifier: BSD-3-Clause
"""case_rows.py - which cases a benchmark script runs, and where it writes their rows."""

import argparse
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any


def wanted_cases(
    parser: argparse.ArgumentParser, given: Sequence[str], cases: Collection[str]
) -> Collection[str]:
    """The cases given, or all when none is. Ends the script if there is no such case."""
    if unknown := [case for case in given if case not in cases]:
        parser.error(f"no case '{unknown[0]}': one of {', '.join(cases)}")
    return given or cases


def write_rows(out: Path | None, rows: Sequence[dict[str, Any]]) -> None:
    """Writes the rows of a table as JSON, if a file is wanted; makes its folder."""
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=2), encoding="utf-8")
