# SPDX-License-Identifier: BSD-3-Clause
"""run_folder.py - the folder of sockets: who owns it, and file access that follows no links."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ..base.problems import RunFailed

_FIX = "set BATCHPLANE_RUN_DIR to a folder of yours, with mode 0700"
# Safe against a link created after unlink(): O_EXCL makes a new file or fails.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe or a device must not block.
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
MAX_BYTES = 256 << 20


def run_dir(env: Mapping[str, str] = os.environ) -> Path:
    """The folder of sockets, made with mode 0700 if missing."""
    uid = os.geteuid()
    choices = [Path(f"/tmp/batchplane-{uid}")]
    if uid == 0:
        choices.insert(0, Path("/run/batchplane"))
    if env.get("XDG_RUNTIME_DIR"):
        choices.insert(0, Path(env["XDG_RUNTIME_DIR"]) / "batchplane")
    if env.get("BATCHPLANE_RUN_DIR"):
        choices = [Path(env["BATCHPLANE_RUN_DIR"])]
    reasons = []
    for folder in choices:
        reason = _why_not(folder, uid)
        if not reason:
            return folder
        reasons.append(f"{folder}{reason}")
    raise RunFailed(f"no folder for sockets: {'; '.join(reasons)}", _FIX)


def _why_not(folder: Path, uid: int) -> str:
    """Empty if the folder exists and only this user can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.lstat()
    except OSError as error:
        return f": {error.strerror}"
    if not stat.S_ISDIR(info.st_mode):
        return " is not a folder, or a link to one"
    if info.st_uid != uid or not os.access(folder, os.W_OK):
        return " belongs to another user"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f" can be written into by others (chmod 700 {folder})"
    return ""


def is_own_socket(path: Path) -> bool:
    """Whether it is a socket of this user; links and other files are not."""
    try:
        info = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(info.st_mode) and info.st_uid == os.geteuid()


def create_own(path: Path) -> int:
    """Replaces the file with a new one of mode 0600. Raises RunFailed."""
    try:
        path.unlink(missing_ok=True)
        return os.open(path, _NEW, 0o600)
    except OSError as error:
        raise RunFailed(
            f"{path} cannot be written: {error.strerror}", "remove what is there"
        ) from error


def open_lock(path: Path) -> int:
    """Opens a file for locking; its content stays. Raises RunFailed."""
    try:
        handle = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600
        )
    except OSError as error:
        raise RunFailed(f"{path} cannot be locked: {error.strerror}", "remove it") from error
    return handle


def read_own(path: Path) -> bytes:
    """The content of a file of this user. Raises OSError for anything else."""
    handle = os.open(path, _LOOK)
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
            raise OSError(f"{path} is not a file of this user")
        return file.read(MAX_BYTES)


def remove_own(path: Path) -> None:
    """Removes a file or a link, not the link's target; ignores errors."""
    with contextlib.suppress(OSError):
        path.unlink()
