# SPDX-License-Identifier: BSD-3-Clause
"""The pipeline language: files to canonical JSON, checked."""
