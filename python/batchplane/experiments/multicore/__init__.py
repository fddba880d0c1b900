# SPDX-License-Identifier: BSD-3-Clause
"""the multicore paper's figures and table."""
