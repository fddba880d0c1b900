# SPDX-License-Identifier: BSD-3-Clause
"""The multicore paper's figures and table."""
