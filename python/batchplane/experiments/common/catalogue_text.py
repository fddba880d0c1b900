# SPDX-License-Identifier: BSD-3-Clause
"""catalogue_text.py - the command that reproduces a result."""

from __future__ import annotations

from collections.abc import Sequence

from .experiment import Setup


def command_line(names: Sequence[str], setup: Setup) -> str:
    """The command as a user types it."""
    words = ["batchplane experiment", *names, f"--{setup.label}"]
    if not setup.is_quick:
        words.append("--full")
    if setup.costs not in ("", "prior"):
        words.append(f"--costs {setup.costs}")
    return " ".join(words)
