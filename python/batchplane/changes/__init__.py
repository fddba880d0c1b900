# SPDX-License-Identifier: BSD-3-Clause
"""What changes while traffic flows: settings and scenarios."""
