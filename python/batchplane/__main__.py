# SPDX-License-Identifier: BSD-3-Clause
"""__main__.py - `python -m batchplane`."""

from .cli.app import main

main()
