# SPDX-License-Identifier: BSD-3-Clause
"""Measures what modules cost."""
