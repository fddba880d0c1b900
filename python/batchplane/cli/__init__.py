# SPDX-License-Identifier: BSD-3-Clause
"""The command line: arguments, help and output of all commands."""

from .app import main

__all__ = ["main"]
