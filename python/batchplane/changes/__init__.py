# SPDX-License-Identifier: BSD-3-Clause
"""Changes while traffic flows: settings and scenarios."""
