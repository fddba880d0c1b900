# SPDX-License-Identifier: BSD-3-Clause
"""test_adding_a_module.py - a new module only touches its family's folder: everything that runs
modules finds it there.

The new module is a copy of ttl and its files under another name, in a copy of the tree.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchplane.profile import setups

TREE = Path(__file__).resolve().parents[3]
FAMILY = Path("src/modules/ip")
PARTS = (".cc", "_test.cc", "_cases.cc", "_golden.py", "_profile.yaml")
MODEL, NEW = "ttl", "lifetime"
COPIED = ("src", "cmake", "tests", "bench", "tools", "pipelines", "python", "CMakeLists.txt", "CMakePresets.json", "pyproject.toml")  # fmt: skip
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "e2e", "corpus", ".*_cache")


def renamed(text: str, suffix: str) -> str:
    """The text of the model's file, rewritten for a module called NEW."""
    if suffix == ".yaml":
        return re.sub(rf"\b{MODEL}\b", NEW, text)
    text = re.sub(rf'"{MODEL}(["_,])', rf'"{NEW}\1', text)  # the kind, a drop reason, a label
    text = re.sub(rf"\b{MODEL}(_\w+)?\.cc\b", rf"{NEW}\1.cc", text)
    # Files of a folder are compiled as one, so constants and functions need unique names too.
    text = re.sub(rf"\b(add|expect_lower)_{MODEL}", rf"\1_{NEW}", text)
    text = re.sub(rf"\bk{MODEL.title()}(?=[A-Z]|\b)", f"k{NEW.title()}", text)
    return re.sub(rf"\b{MODEL.title()}\b", NEW.title(), text)


def copy_tree(to: Path) -> Path:
    to.mkdir()
    for name in COPIED:
        source = TREE / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=LEFT_OUT)
        else:
            shutil.copy2(source, to / name)
    return to


def add_module(tree: Path) -> None:
    for part in PARTS:
        model = TREE / FAMILY / f"{MODEL}{part}"
        text = renamed(model.read_text(encoding="utf-8"), model.suffix)
        (tree / FAMILY / f"{NEW}{part}").write_text(text, encoding="utf-8")


def files_of(tree: Path) -> dict[str, bytes]:
    return {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.parts[-1] != ".ninja_log"
    }


def run(tree: Path, *words: str | Path, is_good: bool = True) -> str:
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == is_good, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The copy before the module was added."""
    return files_of(copy_tree(tmp_path_factory.mktemp("before") / "tree"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy with the module and its golden case, made as `make golden-update` does."""
    tree = copy_tree(tmp_path_factory.mktemp("adding") / "tree")
    add_module(tree)
    run(tree, sys.executable, "tests/golden/make.py")
    return tree


def test_it_touches_its_familys_folder_only(tree: Path, before: dict[str, bytes]) -> None:
    after = files_of(tree)
    changed = {name for name, data in after.items() if before.get(name) != data}
    assert {f"{FAMILY}/{NEW}{part}" for part in PARTS} <= changed
    assert [name for name in changed if not name.startswith(f"{FAMILY}/")] == []
    assert [name for name in changed if name in before] == []


def test_its_golden_case_is_made_beside_it(tree: Path) -> None:
    folder = tree / FAMILY / "golden" / NEW
    assert json.loads((folder / "case.json").read_text())["kind"] == NEW
    assert (folder / "out_0.pcap").stat().st_size > 24
    run(tree, sys.executable, "tests/golden/make.py", "--check")


def test_a_golden_folder_without_its_case_is_told(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    (tree / FAMILY / "golden" / NEW).mkdir()
    told = run(tree, sys.executable, "tests/golden/make.py", "--check", is_good=False)
    assert f"no case: ip/golden/{NEW}" in told


def test_the_checks_of_the_tree_accept_it(tree: Path) -> None:
    assert "layers: good" in run(tree, sys.executable, "tools/check_layers.py")
    told = run(tree, sys.executable, "tools/lint_sizes.py")
    assert f"{FAMILY}/{NEW}" not in told


def test_profile_finds_its_setup(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setups, "folder", lambda: tree / "src")
    with forgotten():
        assert NEW in {kind for setup in setups.setups() for kind in setups.measured_in(setup)}


class forgotten:  # noqa: N801 - reads as a word
    """Reads the setups again inside, and once more afterwards."""

    def __enter__(self) -> None:
        for cached in (setups.files, setups.setups, setups.kinds_without):
            cached.cache_clear()

    def __exit__(self, *_: object) -> None:
        self.__enter__()


@pytest.fixture(scope="module")
def units(tree: Path) -> Iterator[dict[str, set[str]]]:
    """The targets for which each file of the new module is compiled."""
    build = tree / "build-configured"
    run(tree, "cmake", "-S", ".", "-B", build, "-G", "Ninja", "-DBATCHPLANE_DPDK=OFF", "-DBATCHPLANE_BENCH=OFF", "-DBATCHPLANE_UNITY=OFF")  # fmt: skip
    found: dict[str, set[str]] = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if Path(entry["file"]).name.startswith(NEW):
            target = re.search(r" -o \S*CMakeFiles/(\w+)\.dir/", entry["command"])
            assert target is not None
            found.setdefault(Path(entry["file"]).name, set()).add(target[1])
    yield found
    shutil.rmtree(build)


def test_the_build_compiles_it_where_it_belongs(units: dict[str, set[str]]) -> None:
    assert units == {
        f"{NEW}.cc": {"bp_modules"},
        f"{NEW}_test.cc": {"test_modules"},
        f"{NEW}_cases.cc": {"bp_cases"},
    }


def test_the_page_shows_the_model_as_it_is() -> None:
    """Each code block of the page about adding a module is also in one of ttl's files."""
    page = (TREE / "docs" / "adding-a-module.md").read_text(encoding="utf-8")
    texts = [(TREE / FAMILY / f"{MODEL}{part}").read_text(encoding="utf-8") for part in PARTS]
    blocks = re.findall(r"^```(?:cpp|python|yaml)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= len(PARTS)
    strays = [block for block in blocks if not any(block.strip() in text for text in texts)]
    assert strays == []


@pytest.mark.long
def test_it_is_built_run_fuzzed_measured_and_missed(tree: Path, tmp_path: Path) -> None:
    targets = ("test_modules", "replay_modules", "bench_modules", "batchplaned")
    run(tree, "tools/build.sh", "release", *targets)
    schema = json.loads(run(tree, "build/batchplaned", "--modules"))
    assert NEW in {module["kind"] for module in schema["modules"]}
    tests = "Lifetime.*:Cases.*:GoldenCases.*:*Golden*lifetime"
    told = run(tree, "build/test_modules", f"--gtest_filter={tests}")
    assert f"OutcomeIsAsTheModelSays/{NEW}" in told
    assert "Lifetime.DropsThePacketWhoseTtlEnds" in told
    (tmp_path / "seed").write_bytes(b"\x14\x01\0\0")
    run(tree, "build/tests/fuzz/replay_modules", tmp_path, "--golden", "src/modules", "--runs", "9")
    told = run(tree, "build/bench/bench_modules", "--only", NEW, "--trials", "3", "--batches", "1")
    assert f"{NEW}, checksum left" in told

    (tree / FAMILY / f"{NEW}_cases.cc").unlink()
    shutil.rmtree(tree / FAMILY / "golden" / NEW)
    run(tree, "tools/build.sh", "release", "test_modules", "replay_modules")
    told = run(tree, "build/test_modules", f"--gtest_filter={tests}", is_good=False)
    for need in ("fuzz", "cost", "golden"):
        assert f"module kind '{NEW}' has no {need} case" in told
    told = run(tree, "build/tests/fuzz/replay_modules", tmp_path, is_good=False)
    assert f"module kind '{NEW}' has no fuzz case" in told
