# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines between Linux hosts in namespaces."""
