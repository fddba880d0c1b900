# SPDX-License-Identifier: BSD-3-Clause
"""What all experiments share: cases, runs, verdicts, pages."""
