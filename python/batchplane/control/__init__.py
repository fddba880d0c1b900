# SPDX-License-Identifier: BSD-3-Clause
"""Controllers: their names and settings, and controllers written in Python."""
