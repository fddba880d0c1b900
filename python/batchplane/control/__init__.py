# SPDX-License-Identifier: BSD-3-Clause
"""Controllers: named, given settings, written in Python."""
