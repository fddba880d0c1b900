# SPDX-License-Identifier: BSD-3-Clause
"""test_hardening.py - built programs are hardened: stack, copies, function tables, addresses."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from built import needs_daemon_and_extension

from batchplane.daemon.process import find_program
from batchplane.native.loader import extension_path

pytestmark = [
    needs_daemon_and_extension,
    pytest.mark.skipif(shutil.which("readelf") is None, reason="NOT RUN: there is no readelf"),
]


def _readelf(file: Path, *words: str) -> str:
    done = subprocess.run(
        ["readelf", "-W", *words, file], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("part", ["daemon", "extension"])
def test_what_is_built_is_guarded(part: str) -> None:
    file = find_program() if part == "daemon" else extension_path()
    assert file is not None
    header, segments = _readelf(file, "-h"), _readelf(file, "-l")
    dynamic, symbols = _readelf(file, "-d"), _readelf(file, "--dyn-syms")
    assert "DYN" in header, "it is not position-independent"
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK.* RW +0x", segments), "the stack can be executed"
    # Full RELRO: the function table is filled before it becomes read-only.
    assert re.search(r"FLAGS.*\b(BIND_NOW|NOW)\b", dynamic)
    assert "__stack_chk_fail" in symbols
    assert re.search(r"__\w+_chk\b", symbols.replace("__stack_chk", "")), "no copy is checked"
    if part == "daemon":
        assert re.search(r"FLAGS_1.*\bPIE\b", dynamic)
