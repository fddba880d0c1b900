# SPDX-License-Identifier: BSD-3-Clause
"""Compares controllers, one after the other, under the same load."""
