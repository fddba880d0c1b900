# SPDX-License-Identifier: BSD-3-Clause
"""Packet schedulers: schedules of arrivals played through them."""
