# SPDX-License-Identifier: BSD-3-Clause
"""The words of the command line."""

from .app import main

__all__ = ["main"]
