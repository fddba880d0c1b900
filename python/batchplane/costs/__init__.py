# SPDX-License-Identifier: BSD-3-Clause
"""What each module costs: costs files, built-in tables, kept profiles."""
