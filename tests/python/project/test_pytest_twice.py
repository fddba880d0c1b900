# SPDX-License-Identifier: BSD-3-Clause
"""test_pytest_twice.py - a failed test is repeated by itself: good, unsteady, or failed twice."""

import os
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"

# Each run of a test leaves a line; `n` says whether it is the first.
HEAD = """
from pathlib import Path
import pytest

def n(name):
    path = Path(__file__).with_name(name + ".runs")
    with path.open("a") as file:
        file.write("run\\n")
    return len(path.read_text().splitlines())
"""
GOOD = "def test_good():\n    assert n('good')\n"
FLAKY = "def test_flaky():\n    assert n('flaky') > 1\n"
FLAKY_FIXTURE = """
@pytest.fixture
def thing():
    yield
    assert n('ends_badly') > 1

def test_ends_badly(thing):
    pass
"""
BAD = "def test_bad():\n    assert not n('bad')\n"
SKIPS = "def test_skips():\n    assert n('skips') > 1\n    pytest.skip('NOT RUN: not today')\n"
MANY = "@pytest.mark.parametrize('i', range(11))\ndef test_many(i):\n    assert n(f'many{i}') > 1\n"


class Ran:
    """The results of the tests of a folder."""

    def __init__(self, folder: Path, *tests: str, is_long: bool = False) -> None:
        self.folder = folder / "tests"
        self.folder.mkdir()
        (self.folder / "test_some.py").write_text("\n".join((HEAD, *tests)))
        self.log = folder / "step.log"
        words = [str(TOOLS / "pytest_twice.sh"), str(self.folder), str(folder / "some")]
        environment = {k: v for k, v in os.environ.items() if k != "BATCHPLANE_LONG"}
        environment |= {"BATCHPLANE_LONG": "1"} if is_long else {}
        with self.log.open("w") as out:
            done = subprocess.run(
                words, cwd=folder, env=environment, stdout=out, stderr=out, check=False
            )
        self.code = done.returncode
        self.out = self.log.read_text()

    def runs(self, name: str) -> int:
        return len((self.folder / f"{name}.runs").read_text().splitlines())

    @property
    def unsteady(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.startswith("UNSTEADY")]

    @property
    def closing_lines(self) -> list[str]:
        """The lines about it in the summary of all steps."""
        words = ["bash", "-c", 'source "$1"; closing_lines "$2"', "bash"]
        done = subprocess.run(
            [*words, str(TOOLS / "run_tests.sh"), str(self.log)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()


def test_nothing_is_repeated_where_all_is_good(tmp_path: Path) -> None:
    ran = Ran(tmp_path, GOOD)
    assert ran.code == 0, ran.out
    assert ran.runs("good") == 1 and not ran.unsteady
    assert not (tmp_path / "some-again.log").exists()
    assert ran.closing_lines[0].startswith("1 passed in"), ran.closing_lines


@pytest.mark.parametrize(
    ("test", "name"), [(FLAKY, "flaky"), (FLAKY_FIXTURE, "ends_badly")], ids=["call", "fixture"]
)
@pytest.mark.parametrize("is_long", [False, True], ids=["routine", "long"])
def test_what_passes_by_itself_is_unsteady(
    tmp_path: Path, is_long: bool, test: str, name: str
) -> None:
    """Reported with both logs; it fails only the long run. Good tests are not run again."""
    ran = Ran(tmp_path, test, GOOD, is_long=is_long)
    assert ran.code == int(is_long), ran.out
    assert (ran.runs(name), ran.runs("good")) == (2, 1)
    assert len(ran.unsteady) == 1 and f"test_some.py::test_{name} " in ran.unsteady[0], ran.out
    for log in ("some-first.log", "some-again.log"):
        assert str(tmp_path / log) in ran.unsteady[0]
        assert f"test_{name}" in (tmp_path / log).read_text()
    first, *more = ran.closing_lines
    assert "1 passed" in first and "1 of 1 passed by themselves" in first, first
    assert [line.split(maxsplit=1)[1] for line in more] == ran.unsteady


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    ran = Ran(tmp_path, GOOD, BAD, FLAKY)
    assert ran.code == 1, ran.out
    assert (ran.runs("bad"), ran.runs("flaky"), ran.runs("good")) == (2, 2, 1)
    assert len(ran.unsteady) == 1 and "test_flaky" in ran.unsteady[0], ran.out
    assert "2 failed, 1 passed" in ran.closing_lines[0], ran.closing_lines
    assert "1 of 2 passed by themselves" in ran.closing_lines[0], ran.closing_lines


def test_what_is_not_run_again_has_not_passed(tmp_path: Path) -> None:
    ran = Ran(tmp_path, SKIPS)
    assert ran.code == 1, ran.out
    assert ran.runs("skips") == 2 and not ran.unsteady


def test_many_failures_are_no_flakes(tmp_path: Path) -> None:
    ran = Ran(tmp_path, MANY)
    assert ran.code == 1, ran.out
    assert ran.runs("many0") == 1 and not ran.unsteady
    assert "11 failed" in ran.closing_lines[0], ran.closing_lines


def test_files_that_cannot_be_read_fail(tmp_path: Path) -> None:
    ran = Ran(tmp_path, GOOD, "import no_such_thing\n")
    assert ran.code == 1, ran.out
    assert not ran.unsteady and not (tmp_path / "some-again.log").exists()


def test_the_summary_names_what_failed(tmp_path: Path) -> None:
    log = tmp_path / "step.log"
    log.write_text(
        "FAILED tests/a.py::test_b - AssertionError\nERROR tests/c.py\n1 failed, 1 error in 2.0s\n"
        "The following tests FAILED:\n\t  5 - test_slo (Failed)\n\t  6 - test_x (Timeout)\n"
    )
    words = ["bash", "-c", 'source "$1"; failed_tests "$2"', "bash"]
    done = subprocess.run(
        [*words, str(TOOLS / "run_tests.sh"), str(log)], capture_output=True, text=True, check=True
    )
    assert [line.strip() for line in done.stdout.splitlines()] == [
        "5 - test_slo (Failed)",
        "6 - test_x (Timeout)",
        "ERROR tests/c.py",
        "FAILED tests/a.py::test_b - AssertionError",
    ]
