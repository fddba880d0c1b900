# SPDX-License-Identifier: BSD-3-Clause
"""Packet schedulers: plays schedules of arrivals through them."""
