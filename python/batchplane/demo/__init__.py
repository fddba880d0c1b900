# SPDX-License-Identifier: BSD-3-Clause
"""Demos: pipelines between Linux hosts in network namespaces."""
