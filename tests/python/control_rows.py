# SPDX-License-Identifier: BSD-3-Clause
"""control_rows.py - made-up answers of a daemon with a controller."""

from __future__ import annotations

from typing import Any

SLO: list[dict[str, Any]] = [
    {
        "flow": "voice", "slo_ns": 80_000, "percentile": 0.95, "pkts": 200_000, "late_pkts": 500,
        "late_ratio": 0.0025, "delay_ns": 61_000, "headroom_ns": 19_000.0, "p50_ns": 30_000,
        "p99_ns": 75_000, "delay_max_ns": 95_000, "periods": 200, "violated_periods": 3,
        "stalled_periods": 2, "excess_ratio": 0.04, "state": "met", "state_since": "met",
        "hint": "",
        "last": {"pkts": 1000, "late_pkts": 0, "p50_ns": 28_000, "p99_ns": 66_000,
                 "delay_max_ns": 67_000},
    },
    {
        "flow": "video", "slo_ns": 5_000, "percentile": 0.95, "pkts": 1000, "late_pkts": 1000,
        "late_ratio": 1.0, "delay_ns": 9_000, "headroom_ns": -4_000.0, "p50_ns": 7_000,
        "p99_ns": 9_000, "delay_max_ns": 9_000, "periods": 200, "violated_periods": 200,
        "stalled_periods": 0, "excess_ratio": 0.8, "state": "inherent",
        "state_since": "violating",
        "hint": "its modules alone take 6.0 us for one packet",
    },
    {
        "flow": "bulk", "slo_ns": 0, "percentile": 0.95, "pkts": 9_000_000, "late_pkts": 0,
        "late_ratio": 0.0, "delay_ns": None, "headroom_ns": None, "p50_ns": None, "p99_ns": None,
        "delay_max_ns": 400_000, "periods": 200, "violated_periods": 0, "stalled_periods": 0,
        "excess_ratio": None, "state": "no_slo", "state_since": "no_slo", "hint": "",
    },
]  # fmt: skip

CHANGES = [
    {"module": "ttl", "from_pkts": 0, "to_pkts": 12, "from_age_ns": 0, "to_age_ns": 40_000,
     "reason": "hold"},
    {"module": "acl", "from_pkts": 8, "to_pkts": 8, "from_age_ns": 40_000, "to_age_ns": 30_000,
     "reason": "age"},
]  # fmt: skip

CONTROL: dict[str, Any] = {
    "controller": "optimal", "period_ns": 10_000_000, "percentile": 0.95, "tolerance": 0.05,
    "costs": "built-in", "steps": 200, "failed_steps": 1,
    "count_ns": {"median": 32_000, "p99": 70_000, "max": 99_000},
    "apply_ns": {"median": 7_100, "p99": 12_000, "max": 13_000},
    "controller_ns": {"median": 21_000, "p99": 48_000, "max": 90_000},
    "step_ns": {"median": 60_000, "p99": 150_000, "max": 400_000},
    "worker_ratio": 0.0012, "predicted_load": 0.42, "predicted_pps": 7.5e6,
    "drifting": [{"module": "acl", "drift_ratio": 2.1, "cost_per_batch_ns": 90.0,
                  "cost_per_pkt_ns": 8.0}],
    "decisions": [{"now_ns": 5_000_000, "changes": CHANGES[:1]},
                  {"now_ns": 15_000_000, "changes": CHANGES}],
    "events": [{"now_ns": 1, "period": 198, "times": 4, "message": "trigger 99 is out of range"}],
}  # fmt: skip

EXPLAIN: dict[str, Any] = {
    "controller": "optimal",
    "flows": [
        {
            "flow": "voice", "state": "met", "slo_ns": 80_000.0, "margin_ns": 4_000.0,
            "measured_ns": 61_000.0, "turnaround_ns": 20_000.0, "bias_ns": -1_000.0,
            "fill_ns": 30_000.0, "service_ns": 5_000.0, "slack_ns": 25_000.0,
            "multiplier_pps_per_us": 12_500.0, "hint": "",
            "modules": [{"module": "ttl", "trigger_pkts": 12, "fill_ns": 30_000.0,
                         "service_ns": 5_000.0, "heaviest": "out", "heaviest_ns": 4_000.0}],
        }
    ],
    "modules": [
        {
            "module": "ttl", "trigger_pkts": 12, "age_limit_ns": 40_000, "arrived_mean_pkts": 4.0,
            "batch_mean_pkts": 12.0, "cost_per_batch_ns": 300.0, "cost_per_pkt_ns": 9.0,
            "why": "a flow's budget", "binding_flow": "voice", "multiplier_pps_per_us": 12_500.0,
            "hold_ns": 1.5,
        },
        {"module": "out", "trigger_pkts": 0, "age_limit_ns": 0, "arrived_mean_pkts": None,
         "batch_mean_pkts": None, "cost_per_batch_ns": 0.0, "cost_per_pkt_ns": 0.0,
         "why": "packets leave here"},
    ],
    "decisions": CONTROL["decisions"],
}  # fmt: skip
