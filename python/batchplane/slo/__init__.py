# SPDX-License-Identifier: BSD-3-Clause
"""The controllers as a library, for programs that run their own batches (docs/library.md)."""
