# SPDX-License-Identifier: BSD-3-Clause
"""Trees of subscribers and their queues."""
