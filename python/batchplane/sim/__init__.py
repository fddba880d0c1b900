# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines in virtual time."""
