# SPDX-License-Identifier: BSD-3-Clause
"""Which applications run on which devices: problems, plans and their results."""
