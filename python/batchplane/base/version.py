# SPDX-License-Identifier: BSD-3-Clause
"""version.py - of the package, for those who keep what it made."""

__version__ = "0.1.0"
