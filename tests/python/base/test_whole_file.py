# SPDX-License-Identifier: BSD-3-Clause
"""test_whole_file.py - results replace regular files, and are written into special ones."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from batchplane.base.problems import BadInput
from batchplane.base.whole_file import write_whole


def test_a_pipe_is_written_into_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"x" * 300_000)  # more than a pipe holds
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    reader.join(timeout=10)
    assert got == [b"x" * 300_000]


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        write_whole(tmp_path, "new")
