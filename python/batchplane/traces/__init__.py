# SPDX-License-Identifier: BSD-3-Clause
"""Reads captures, generates them, describes them, and splits them into routes."""
