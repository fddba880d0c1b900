# SPDX-License-Identifier: BSD-3-Clause
"""test_fuzzers.py - the script that runs libFuzzer gives each target the seeds in the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
TARGETS = sorted(path.stem for path in (TREE / "tests" / "fuzz").glob("fuzz_*.cc"))


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TREE / "tools" / "run_fuzzers.sh", folder, "1"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_target_gets_its_corpus(tmp_path: Path) -> None:
    """Fake targets print the folders that they get."""
    programs = tmp_path / "tests" / "fuzz"
    programs.mkdir(parents=True)
    for name in TARGETS:
        program = programs / name
        program.write_text(
            '#!/bin/bash\nfor word in "$@"; do [[ -d $word ]] && echo "$0 $word"; done\ntrue\n'
        )
        program.chmod(0o755)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    for name in TARGETS:
        seeds = f"tests/fuzz/corpus/{name.removeprefix('fuzz_')}"
        assert any((TREE / seeds).iterdir())
        assert f"{programs / name} {tmp_path / 'corpus' / name}" in done.stdout
        assert f"{programs / name} {seeds}" in done.stdout


def test_a_folder_without_targets_is_reported(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1
    assert "no targets in" in done.stderr
