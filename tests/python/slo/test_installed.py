# SPDX-License-Identifier: BSD-3-Clause
"""test_installed.py - the C++ library: an outside program needs only what is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
BUILD = TREE / "build"
pytestmark = [
    pytest.mark.skipif(
        not (BUILD / "libbatchplane_slo.a").is_file(),
        reason="NOT RUN: tools/build.sh release batchplane_slo has not been run",
    ),
    pytest.mark.skipif(shutil.which("ninja") is None, reason="NOT RUN: there is no ninja"),
]


def run(*words: str | Path) -> str:
    # The compiler's own search paths, not those that this machine has set up.
    environment = {key: value for key, value in os.environ.items() if "INCLUDE_PATH" not in key}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_program_outside_steps_the_controller(tmp_path: Path) -> None:
    installed, made = tmp_path / "installed", tmp_path / "made"
    run("cmake", "--install", BUILD, "--component", "slo", "--prefix", installed)
    folders = {path.name for path in (installed / "include" / "batchplane").iterdir()}
    assert folders == {"base", "exec", "slo"}
    assert not list(installed.rglob("*_test_util.h"))
    run("cmake", "-G", "Ninja", "-S", TREE / "tests" / "consumer", "-B", made, f"-DCMAKE_PREFIX_PATH={installed}")  # fmt: skip
    run("cmake", "--build", made)
    module, trigger_pkts, age_limit_ns = run(made / "consumer").split()
    assert module == "infer" and 8 <= int(trigger_pkts) <= 16
    assert 0 < int(age_limit_ns) < 80_000_000
