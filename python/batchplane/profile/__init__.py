# SPDX-License-Identifier: BSD-3-Clause
"""Measures the costs of modules and devices."""
