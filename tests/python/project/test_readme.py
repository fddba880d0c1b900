# SPDX-License-Identifier: BSD-3-Clause
"""test_readme.py - every command in README works once its first one, `make run`, has run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from built import needs_daemon_and_extension

from batchplane.cli.app import make_app
from batchplane.demo import bng, demos, netns

TREE = Path(__file__).resolve().parents[3]
README = (TREE / "README.md").read_text(encoding="utf-8")
CODE = [
    *re.findall(r"`([^`]+)`", README),
    *(line.split("#")[0].strip() for line in re.findall(r"^    (\S.*)$", README, re.MULTILINE)),
]
MAKE = [words for words in CODE if words.startswith("make ")]
BATCHPLANE = [words for words in CODE if words.startswith(".venv/bin/batchplane ")]
# The Debian package of each tool that the demos need.
PACKAGE_OF = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "ping": "iputils-ping",
    "ethtool": "ethtool",
    "curl": "curl",
    "iperf3": "iperf3",
}


def test_readme_shows_the_commands_that_are_tested_here() -> None:
    shown = {words.split()[1] for words in BATCHPLANE}
    assert {"simulate", "plan", "demo"} <= shown and "make run" in MAKE


def dry_run(words: str) -> list[str]:
    done = subprocess.run(
        ["make", "-n", *shlex.split(words)[1:]],
        cwd=TREE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", MAKE)
def test_each_make_command_is_a_target(words: str) -> None:
    assert dry_run(words)


def test_make_run_builds_all_that_the_commands_need() -> None:
    told = dry_run("make run")
    (build,) = [line for line in told if "tools/build.sh" in line]
    assert {"batchplaned", "native"} <= set(build.split())
    assert told.index("tools/make_venv.sh") < told.index(build), "native needs nanobind of .venv"


def test_make_run_installs_what_the_demonstrations_need() -> None:
    assert any("tools/install_packages.sh run" in line for line in dry_run("make run"))
    text = (TREE / "tools" / "install_packages.sh").read_text(encoding="utf-8")
    match = re.search(r"^ +run\) echo (.*?);;", text, re.MULTILINE | re.DOTALL)
    assert match is not None
    for tool in (*netns.TOOLS, *demos.TOOLS, *bng.TOOLS):
        assert PACKAGE_OF[tool] in match[1].split()


@pytest.mark.parametrize("words", [words for words in BATCHPLANE if " demo " not in words])
@needs_daemon_and_extension
def test_each_batchplane_command_ends_well(words: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "BATCHPLANE_RUN_DIR": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "batchplane", *shlex.split(words)[1:]],
        cwd=TREE, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout, f"{words}: {done.stderr}"


def test_demos_and_commands_that_are_named_exist() -> None:
    for words in BATCHPLANE:
        if " demo " in words:
            assert words.split()[2] in demos.DEMOS
    named = re.search(r"batchplane --help` has the rest: ([^.]*)\.", README)
    assert named is not None
    commands = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]
    for name in re.findall(r"`(\w+)`", named[1]):
        assert name in commands
