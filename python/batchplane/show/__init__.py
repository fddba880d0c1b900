# SPDX-License-Identifier: BSD-3-Clause
"""What a daemon or a simulation says of itself, for reading."""
