# SPDX-License-Identifier: BSD-3-Clause
"""test_gpu_folder.py - the folder for machines with a GPU: no file of anybody else is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "gpu_folder.sh"


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "mine" / "letters"
    kept.parent.mkdir()
    kept.write_text("dear")
    done = subprocess.run(
        [str(SCRIPT), "mine"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"gpu_folder: {kept.parent} has other files in it: give a new folder, or one that this made"
    ]
    assert kept.read_text() == "dear"
