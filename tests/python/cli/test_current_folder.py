# SPDX-License-Identifier: BSD-3-Clause
"""test_current_folder.py - no file of the current folder is executed unless its path is given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from built import needs_daemon_and_extension

from batchplane.base.problems import BadInput
from batchplane.lang.load import find_pipeline, pipeline_names

TRAP = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"
# Of the standard library, of installed packages, of the program itself.
MODULES = (
    "dataclasses", "json", "pickle", "queue", "subprocess", "multiprocessing", "yaml", "typer",
    "numpy", "rich", "pydantic", "cli", "sitecustomize", "gateway", "l2l3", "simple",
)  # fmt: skip


@pytest.fixture
def trapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of an attacker who hopes that root runs a command in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    for name in MODULES:
        for folder in (tmp_path, tmp_path / "pipelines"):
            (folder / f"{name}.py").write_text(TRAP)
    return tmp_path


def _ran(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.rglob("*.ran"))


@needs_daemon_and_extension
@pytest.mark.parametrize(
    "words",
    [
        ("check", "gateway"),
        ("check", "l2l3"),
        ("simulate", "simple", "--duration", "1ms", "--seeds", "2", "--jobs", "2"),
    ],
)
def test_commands_run_no_code_of_the_current_folder(trapped: Path, words: tuple[str, ...]) -> None:
    for command in (
        [Path(sys.executable).with_name("batchplane")],
        [sys.executable, "-m", "batchplane"],
    ):
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=300)
        assert (done.returncode, _ran(trapped)) == (0, []), done.stderr


def test_code_runs_by_its_path_only(trapped: Path) -> None:
    (trapped / "pipelines" / "mine.py").write_text(TRAP)
    assert find_pipeline("l2l3").suffix == ".yaml"
    assert "mine" not in pipeline_names()
    with pytest.raises(
        BadInput, match=r"no pipeline 'mine' \(code runs by its path only: pipelines/mine.py\)"
    ):
        find_pipeline("mine")
    assert find_pipeline("pipelines/mine.py") == Path("pipelines/mine.py")
