# SPDX-License-Identifier: BSD-3-Clause
"""Finds the gates that each flow takes."""
