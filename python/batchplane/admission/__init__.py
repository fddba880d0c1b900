# SPDX-License-Identifier: BSD-3-Clause
"""Whether packet schedulers can meet the flows' SLOs, and with which weights."""
