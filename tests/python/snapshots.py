# SPDX-License-Identifier: BSD-3-Clause
"""snapshots.py - made-up answers of `show all`, one second apart, for the tests of the views."""

from __future__ import annotations

from typing import Any

from control_rows import CONTROL, SLO

HELLO = {
    "version": 1,
    "daemon": "0.1.0",
    "name": "demo",
    "pid": 42,
    "uptime_ns": 5,
    "pipeline": "demo",
    "facts": {
        "lookup": "avx512",
        "memory": "4 KB pages, no hugepages",
        "cpu": "Test CPU",
        "workers": [{"name": "w0", "core": 1}],
        "generator_core": 0,
    },
}


def module(
    name: str, kind: str, pkts: int, ns_per_pkt: float | None, dropped: int = 0
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "worker": "w0",
        "batches": pkts // 8,
        "pkts": pkts,
        "batch_mean_pkts": 8.0,
        "ns_per_pkt": ns_per_pkt,
        "cost_per_batch_ns": 10.0,
        "cost_per_pkt_ns": 2.0,
        "dropped_pkts": dropped,
    }


def flow(name: str, pkts: int, late: int, p99: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "path": ["in", "ttl_0", "out"],
        "delay_slo_ns": 1_000_000,
        "pkts": pkts,
        "late_pkts": late,
        "delay_mean_ns": 4000,
        "delay_max_ns": 2_500_000,
        "percentiles_ns": {"p50": 3000, "p95": 9000, "p99": p99, "p99.9": None},
    }


def edge(start: str, gate: int | str, end: str, pkts: int) -> dict[str, Any]:
    return {"from": start, "gate": gate, "to": end, "pkts": pkts}


def snapshot(seconds: int, n_branches: int = 5) -> dict[str, Any]:
    """Counters of a run at a million packets a second, `seconds` after its start."""
    pkts = seconds * 1_000_000
    share = pkts // n_branches
    dropped = seconds * 2000
    causes = {
        "full": {"firings": share // 16, "pkts": share, "wait_ns": share * 500},
        "age": {"firings": seconds, "pkts": seconds * 3, "wait_ns": seconds * 9000},
        "idle": {"firings": 0, "pkts": 0, "wait_ns": 0},
        "change": {"firings": 0, "pkts": 0, "wait_ns": 0},
    }
    return {
        "runtime": {
            "now_ns": 10**12 + seconds * 10**9,
            "epoch_ns": 10**12,
            "workers": [
                {
                    "name": "w0",
                    "core": 1,
                    "loops": 7,
                    "busy_ratio": 0.62,
                    "runs": 6,
                    "clock_reads": 9,
                    "gaps": {"count": 2, "max_ns": 130_000, "sum_ns": 200_000},
                    "regimes_cycles": {"poll": 1, "run": 2, "idle": 3, "control": 4},
                }
            ],
            "balance": {
                "in_pkts": pkts,
                "originated_pkts": 0,
                "sent_pkts": pkts - dropped - 9,
                "dropped_pkts": dropped,
                "held_pkts": 9,
                "in_flight_pkts": 0,
                "is_exact": True,
            },
            "modules": [
                module("in", "port_in", pkts, 3.0),
                *[
                    module(f"ttl_{i}", "ttl", share, 4.0 + i, dropped // n_branches)
                    for i in range(n_branches)
                ],
                module("out", "sink", pkts, None),
            ],
        },
        "buffers": {
            "buffers": [
                {
                    "module": f"ttl_{i}",
                    "trigger_pkts": 16,
                    "age_limit_ns": 50_000,
                    "held_pkts": i,
                    "arrived_batches": share // 4,
                    "arrived_pkts": share,
                    "late_releases": 0,
                    "causes": causes,
                }
                for i in range(n_branches)
            ],
            "worst_firings_per_run": 3,
        },
        "flows": [
            *[flow(f"flow_{i}", share, i, 11_000 + i) for i in range(n_branches)],
            {**flow("other", 0, 0, None), "delay_slo_ns": None},
        ],
        "drops": [
            {
                "module": f"ttl_{i}",
                "reason": "ttl_expired",
                "pkts": dropped // n_branches,
                "meaning": "the TTL ended",
                "remedy": "look for a loop",
            }
            for i in range(n_branches)
        ],
        "ports": [
            {
                "name": "p0",
                "kind": "ring",
                "is_up": True,
                "mac": "",
                "mtu_bytes": 1500,
                "stats": {"rx_pkts": pkts, "tx_pkts": 0, "rx_missed_pkts": 0},
                "facts": {"size_pkts": 64},
            }
        ],
        "tables": [{"module": "lookup", "kind": "ipv4_lookup", "routes": 500, "path": "avx512"}],
        "graph": {
            "nodes": [
                {"name": "in", "kind": "port_in", "pkts": pkts},
                *[
                    {"name": f"ttl_{i}", "kind": "ttl", "trigger_pkts": 16, "pkts": share}
                    for i in range(n_branches)
                ],
                {"name": "out", "kind": "sink", "pkts": pkts},
                {"name": "icmp", "kind": "icmp_error", "pkts": dropped},
            ],
            "edges": [
                *[edge("in", i, f"ttl_{i}", share) for i in range(n_branches)],
                *[edge(f"ttl_{i}", 0, "out", share) for i in range(n_branches)],
                edge("ttl_0", "drop", "icmp", dropped),
                edge("icmp", 0, "out", dropped),
            ],
        },
        "generators": [
            {
                "name": "load",
                "sent_pkts": pkts,
                "refused_pkts": seconds * 10,
                "rate_pps": 1e6,
                "late_ns": 300,
            }
        ],
        "slo": SLO,
        "control": CONTROL,
    }
