# SPDX-License-Identifier: BSD-3-Clause
"""What the commands do, usable without the command line."""
