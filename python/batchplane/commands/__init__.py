# SPDX-License-Identifier: BSD-3-Clause
"""The commands themselves, usable without the command line."""
