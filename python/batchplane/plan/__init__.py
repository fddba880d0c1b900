# SPDX-License-Identifier: BSD-3-Clause
"""What a pipeline will carry, before anything runs."""
