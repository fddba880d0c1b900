# SPDX-License-Identifier: BSD-3-Clause
"""`show cores`: loads and rates between two answers, and the rings of each worker."""

from __future__ import annotations

import io

from rich.console import Console

from batchplane.show.cores import cores_of, render_cores


def _runtime(now_ns: int, pkts: int, busy_ns: int) -> dict:
    def worker(name: str, core: int, busy: int) -> dict:
        return {
            "name": name, "core": core, "runs": pkts // 10,
            "gaps": {"sum_ns": busy // 10}, "regimes_ns": {"busy": busy},
        }  # fmt: skip

    def module(name: str, kind: str, worker: str) -> dict:
        return {"name": name, "kind": kind, "worker": worker, "pkts": pkts}

    def came(name: str) -> dict:
        return {
            "module": name, "waiting_pkts": 5, "fill_mean_pkts": 7.5, "lost_pkts": 1,
            "poll_pkts": 32 if name == "in" else 8,
        }  # fmt: skip

    return {
        "now_ns": now_ns,
        "workers": [worker("front", 1, busy_ns), worker("back", -1, busy_ns // 2)],
        "modules": [
            module("in", "port_in", "front"), module("ring", "queue", "front"),
            module("ring@back", "queue", "back"), module("out", "sink", "back"),
        ],
        "inputs": [came("in"), came("ring")],
    }  # fmt: skip


EDGES = [
    {"from": "in", "to": "ring"},
    {"from": "ring", "to": "out"},
    {"from": "ring@back", "to": "out"},
]


def test_rates_and_loads_are_those_between_the_two() -> None:
    data = cores_of(
        _runtime(1_000_000_000, 1000, 100_000_000),
        _runtime(1_500_000_000, 6000, 350_000_000),
        EDGES,
        {"ring": {"credit_pkts": 64}},
    )
    front, back = data["cores"]
    assert front["load"] == 0.5
    assert back["load"] == 0.25
    assert front["runs_per_s"] == 1000
    assert front["inputs"] == ["in"]
    assert front["poll_pkts"] == [32]
    assert [(r["ring"], r["from"], r["to"], r["rate_pps"], r["credit_pkts"]) for r in data["rings"]] == [
        ("ring", "front", "back", 10_000, 64),
        ("ring@back", "back", "back", 10_000, 64),
    ]  # fmt: skip


def test_it_is_told_in_two_tables() -> None:
    text = io.StringIO()
    data = cores_of(_runtime(10**9, 0, 0), _runtime(2 * 10**9, 10_000, 10**9), EDGES, {})
    Console(file=text, width=120).print(render_cores(data))
    told = text.getvalue()
    assert "shared" in told
    assert "in (32)" in told and "ring@back (8)" in told
    assert "100%" in told
    assert "10.0 kpps" in told
