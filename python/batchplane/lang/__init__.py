# SPDX-License-Identifier: BSD-3-Clause
"""The pipeline language: turns files into checked canonical JSON."""
