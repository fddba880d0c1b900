# SPDX-License-Identifier: BSD-3-Clause
"""Captures: read, made up, described, cut into routes."""
