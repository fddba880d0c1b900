# SPDX-License-Identifier: BSD-3-Clause
"""the single-core paper's figures and tables."""
