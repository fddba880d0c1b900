# SPDX-License-Identifier: BSD-3-Clause
"""The papers' experiments, and those that the papers cannot make: `batchplane experiment`."""
