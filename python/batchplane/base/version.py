# SPDX-License-Identifier: BSD-3-Clause
"""version.py - the package's version, stored with results and profiles."""

__version__ = "0.1.0"
