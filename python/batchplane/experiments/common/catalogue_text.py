# SPDX-License-Identifier: BSD-3-Clause
"""catalogue_text.py - the command that makes a result again."""

from __future__ import annotations

from collections.abc import Sequence

from .experiment import Setup


def command_line(names: Sequence[str], setup: Setup) -> str:
    """As a user types it."""
    words = ["batchplane experiment", *names, f"--{setup.label}"]
    if not setup.is_quick:
        words.append("--full")
    if setup.costs != "prior":
        words.append(f"--costs {setup.costs}")
    return " ".join(words)
