# SPDX-License-Identifier: BSD-3-Clause
"""test_build_progress.py - the displayed progress of a build, in virtual time."""

import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "tools"))

import build_progress  # noqa: E402
from build_progress import Display  # noqa: E402


def test_lines_come_every_few_seconds_without_a_terminal() -> None:
    display = Display(is_terminal=False, now_s=100.0)
    assert display.line("@10/61@ Building CXX object a.o") == ""
    assert display.tick(101.0) == ""
    assert display.tick(110.0) == "build: 10 of 61 files, 0:10, about 0:51 left\n"
    assert display.tick(112.0) == ""
    display.line("@61/61@ Linking CXX executable b")
    assert display.end(180.0) == "build: 61 of 61 files, 1:20\n"


def test_a_terminal_gets_a_bar_that_stays_on_its_line() -> None:
    display = Display(is_terminal=True, now_s=0.0)
    display.line("@1/2@ a")
    assert display.tick(3.0) == (
        "\r\x1b[Kbuild: [###############...............] 1 of 2 files, 0:03, about 0:03 left"
    )


def test_what_compilers_say_passes_through() -> None:
    display = Display(is_terminal=False, now_s=0.0)
    assert display.line("a.cc:1: warning: b") == "a.cc:1: warning: b\n"
    assert display.line("FAILED: a.o") == "FAILED: a.o\n"


def test_nothing_to_do_says_nothing() -> None:
    tool = TREE / "tools" / "build_progress.py"
    run = subprocess.run([tool], input="ninja: no work to do.\n", capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "")


def test_a_line_without_an_end_is_not_lost() -> None:
    tool = TREE / "tools" / "build_progress.py"
    run = subprocess.run([tool], input="x.cc: error", capture_output=True, text=True)
    assert run.stdout == "x.cc: error\n"


def test_the_status_is_read_back() -> None:
    line = build_progress.STATUS.replace("%f", "3").replace("%t", "7") + "Building"
    display = Display(is_terminal=False, now_s=0.0)
    display.line(line)
    assert display.end(1.0).startswith("build: 3 of 7 files")
