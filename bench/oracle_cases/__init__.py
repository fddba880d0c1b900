# SPDX-License-Identifier: BSD-3-Clause
"""The tables of bench/oracle.py, one module each, and what they share."""
