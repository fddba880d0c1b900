# SPDX-License-Identifier: BSD-3-Clause
"""Simulates pipelines in virtual time."""
