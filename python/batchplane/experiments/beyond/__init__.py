# SPDX-License-Identifier: BSD-3-Clause
"""Our own questions, which the papers do not ask."""
