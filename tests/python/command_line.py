# SPDX-License-Identifier: BSD-3-Clause
"""command_line.py - runs `batchplane` in this process."""

import sys

import pytest

from batchplane.cli.app import main


def run_command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of `batchplane WORDS...`."""
    monkeypatch.setattr(sys, "argv", ["batchplane", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)
