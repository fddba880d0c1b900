# SPDX-License-Identifier: BSD-3-Clause
"""What all other packages build on: problems, units, consoles, tables."""
