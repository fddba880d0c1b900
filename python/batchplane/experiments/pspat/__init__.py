# SPDX-License-Identifier: BSD-3-Clause
"""PSPAT's experiments: egress scheduling with guarantees."""
