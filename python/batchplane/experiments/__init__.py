# SPDX-License-Identifier: BSD-3-Clause
"""The papers' experiments, and experiments beyond the papers: `batchplane experiment`."""
