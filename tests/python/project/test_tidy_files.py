# SPDX-License-Identifier: BSD-3-Clause
"""test_tidy_files.py - clang-tidy always gets some files, and changed ones come first."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "tidy_files.py"


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit(
            **{
                "src/a.h": "",
                "src/b.h": '#include "a.h"\n',
                "src/uses_b.cc": '#include "b.h"\n',
                "src/alone.cc": "",
            }
        )

    def git(self, *words: str) -> None:
        named = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run(["git", *named, *words], cwd=self.folder, check=True, capture_output=True)

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def chosen(self, *words: str, folder: Path | None = None) -> list[str]:
        environment = {k: v for k, v in os.environ.items() if k != "CLANG_TIDY_BASE"}
        done = subprocess.run(
            [sys.executable, TOOL, *words],
            cwd=folder or self.folder, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "tree")


def test_a_fresh_clone_whose_last_commits_changed_no_code(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(**{"src/alone.cc": "int x;\n"})
    repository.commit(README="words")
    repository.commit(README="more words")
    repository.git("clone", "-q", str(repository.folder), str(tmp_path / "clone"))
    assert repository.chosen(folder=tmp_path / "clone") == ["src/alone.cc"]


def test_a_clone_of_one_commit_has_all(repository: Repository, tmp_path: Path) -> None:
    url = f"file://{repository.folder}"
    repository.git("clone", "-q", "--depth", "1", url, str(tmp_path / "clone"))
    assert repository.chosen(folder=tmp_path / "clone") == ["src/alone.cc", "src/uses_b.cc"]


def test_a_branch_has_its_own_changes(repository: Repository) -> None:
    repository.commit(**{"src/alone.cc": "int x;\n"})
    repository.git("checkout", "-q", "-b", "mine")
    repository.commit(**{"src/uses_b.cc": '#include "b.h"\nint y;\n'})
    repository.commit(README="words")
    assert repository.chosen() == ["src/uses_b.cc"]


def test_a_header_comes_by_who_includes_it(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "mine")
    repository.commit(**{"src/a.h": "int z();\n"})
    assert repository.chosen() == ["src/uses_b.cc"]


def test_what_is_not_compiled_is_left_out(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "mine")
    repository.commit(**{"src/x_heap.cc": "", "src/alone.cc": "int x;\n"})
    commands = [{"file": str(repository.folder / "src/alone.cc")}]
    (repository.folder / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    assert repository.chosen("commands.json") == ["src/alone.cc"]


@pytest.mark.parametrize(
    ("lines", "n_files", "last", "code"),
    [
        ([], 3, "clang-tidy: good (3 of 3 changed files)", 0),
        (
            ["2 warnings generated.", *[f"clang-tidy: no time for src/{i}.cc" for i in range(28)]],
            40,
            "clang-tidy: good (12 of 40 changed files; 28 not reached in 100 s, "
            "CLANG_TIDY_ALL=1 looks at all)",
            0,
        ),
        (
            ["src/a.cc:1:1: error: x", "clang-tidy: failed", "clang-tidy: no time for src/b.cc"],
            2,
            "clang-tidy: FAILED (1 of 2 changed files; 1 not reached in 100 s, "
            "CLANG_TIDY_ALL=1 looks at all)",
            1,
        ),
    ],
)
def test_the_last_line_tells_what_was_not_reached(
    tmp_path: Path, lines: list[str], n_files: int, last: str, code: int
) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{line}\n" for line in lines))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CLANG_TIDY")}
    done = subprocess.run(
        [TOOL.parent / "lint.sh", "tidy-told", log, str(n_files)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, last)
    assert ("error: x" in done.stdout) == bool(code)
