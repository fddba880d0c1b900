# SPDX-License-Identifier: BSD-3-Clause
"""The single-core paper's figures and tables."""
