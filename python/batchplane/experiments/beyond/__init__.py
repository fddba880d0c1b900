# SPDX-License-Identifier: BSD-3-Clause
"""what no paper asked: our own questions to the same program."""
