# SPDX-License-Identifier: BSD-3-Clause
"""Which gate each flow takes."""
