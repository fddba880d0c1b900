# SPDX-License-Identifier: BSD-3-Clause
"""Starts, finds, queries and stops daemons."""
