# SPDX-License-Identifier: BSD-3-Clause
"""One load with one controller after the other."""
