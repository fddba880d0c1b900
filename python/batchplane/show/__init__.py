# SPDX-License-Identifier: BSD-3-Clause
"""Renders the answers of a daemon or a simulation for people."""
