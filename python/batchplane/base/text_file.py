# SPDX-License-Identifier: BSD-3-Clause
"""text_file.py - reads text files of people and their programs, without a byte order mark."""

from __future__ import annotations

from pathlib import Path

from .problems import BadInput, Problem


def read_text(path: Path) -> str:
    """The content of the file. Raises BadInput."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise BadInput(Problem(f"cannot be read: {reason}", str(path))) from error
