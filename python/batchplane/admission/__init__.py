# SPDX-License-Identifier: BSD-3-Clause
"""whether packet schedulers leave flows what they are promised, and with which weights."""
