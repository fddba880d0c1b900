# SPDX-License-Identifier: BSD-3-Clause
"""What each module costs: files, built-in tables, profiles that are kept."""
