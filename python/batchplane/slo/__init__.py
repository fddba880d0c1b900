# SPDX-License-Identifier: BSD-3-Clause
"""The controllers as a library, for programs that run batches of their own (docs/library.md)."""
