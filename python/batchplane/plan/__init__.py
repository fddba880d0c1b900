# SPDX-License-Identifier: BSD-3-Clause
"""Predicts what a pipeline will carry, before anything runs."""
