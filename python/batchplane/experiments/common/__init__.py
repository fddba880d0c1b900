# SPDX-License-Identifier: BSD-3-Clause
"""what every experiment stands on: cases, runs, verdicts, pages."""
