# SPDX-License-Identifier: BSD-3-Clause
"""whole_file.py - writes files atomically: the new content is complete, or the old one stays.

Special files (a pipe, a device) are written in place: a regular file must not replace them.
"""

from __future__ import annotations

import os
import tempfile
from io import FileIO
from pathlib import Path

from .problems import BadInput, Problem


def write_whole(path: Path, content: str | bytes, fix: str = "") -> None:
    """Writes a temporary file and renames it; creates folders. Raises BadInput, and cleans up
    then."""
    data = content.encode() if isinstance(content, str) else content
    given = path
    name = ""
    try:
        # Through a link, its target is written; the link stays.
        path = Path(os.path.realpath(path))
        if path.exists() and not path.is_file():
            with path.open("wb", buffering=0) as special:
                _write_all(special, data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp makes files private; a result has the usual permissions.
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException as error:
        if name:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            message = f"cannot be written: {error.strerror or error}"
            raise BadInput(Problem(message, str(given), fix=fix)) from error
        raise


def _write_all(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
