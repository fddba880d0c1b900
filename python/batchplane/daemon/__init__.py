# SPDX-License-Identifier: BSD-3-Clause
"""Daemons: started, found, asked, stopped."""
