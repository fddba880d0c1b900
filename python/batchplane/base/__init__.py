# SPDX-License-Identifier: BSD-3-Clause
"""What all others stand on: problems, units, consoles, tables."""
