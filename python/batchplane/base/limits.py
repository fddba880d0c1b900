# SPDX-License-Identifier: BSD-3-Clause
"""limits.py - the least and the most of each number in a pipeline: src/spec/limits.h for Python.

Made by tools/make_limits.py; change the header.
"""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """Both belong to what is allowed."""

    least: int
    most: int


BATCH_PKTS = Limit(1, 256)
POOL_PKTS = Limit(0, 1_073_741_824)
SAMPLE_ONE_RUN_IN = Limit(1, 1_073_741_824)
HEAVY_NS = Limit(1, 65_535)
SEED = Limit(0, 9_223_372_036_854_775_807)
TRIGGER_PKTS = Limit(0, 256)
POLL_PKTS = Limit(1, 256)
STRANDING_LIMIT_NS = Limit(1, 1_000_000_000_000_000)
AGE_LIMIT_NS = Limit(1, 1_000_000_000_000_000)
DELAY_SLO_NS = Limit(0, 1_000_000_000_000_000)
QUEUEING_TIME_THRESHOLD_NS = Limit(0, 1_000_000_000_000_000)
EVENT_NS = Limit(0, 1_000_000_000_000_000)
PERIOD_NS = Limit(1_000_000, 1_000_000_000)
WEIGHT = Limit(1, 1_024)
TASK_QUEUE_PKTS = Limit(0, 4_096)
QUEUE_PKTS = Limit(1, 4_096)
HIGH_WATERMARK_PERCENT = Limit(1, 100)
LOW_WATERMARK_PERCENT = Limit(0, 100)
MTU_BYTES = Limit(68, 9_710)
CORE = Limit(0, 1_023)
MODULES = Limit(1, 32_768)
EDGES = Limit(0, 131_072)
FLOWS = Limit(0, 32_768)
TRAFFIC_FLOWS = Limit(1, 1_048_576)
RATE_PPS = Limit(0, 1_000_000_000)
