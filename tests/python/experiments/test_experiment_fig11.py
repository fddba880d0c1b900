# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment_fig11.py - the claims of figure 11, with numbers that meet them and that do
not."""

from __future__ import annotations

from typing import Any

from batchplane.experiments.batchy.fig11_claims import ASYMMETRIES, claims
from batchplane.experiments.common.daemon_run import flows_between


def row(what: str, mode: str, proportion: float, delay_ns: float, slo: str = "") -> dict[str, Any]:
    return {
        "asymmetry": what,
        "mode": mode,
        "slo": slo,
        "load": 0.9 if slo else 0.0,
        "rate_pps": 1e6,
        "proportion": proportion,
        "nf1_delay_ns": delay_ns,
        "nf2_delay_ns": delay_ns / 2,
        "batch_mean_pkts": 8.0,
        "violated_ratio": 0.0,
    }


def rows() -> list[dict[str, Any]]:
    made = []
    for what in ASYMMETRIES:
        made += [row(what, "RTC", 1.0, 1e4), row(what, "WFQ", 0.6, 2e4)]
        made += [row(what, "NFVnice", 1.01, 1e4)]
        made += [row(what, mode, 1.0, 1e4, "60us") for mode in ("RTC, optimal", "WFQ, explicit")]
    return made


def verdicts(changed: list[dict[str, Any]]) -> list[str]:
    return [verdict.verdict for verdict in claims(changed)]


def test_claims_that_hold() -> None:
    assert verdicts(rows()) == ["better", *["same"] * 5, "better"]


def test_each_claim_can_fail() -> None:
    for position, (mode, key, value) in enumerate(
        [
            ("RTC", "proportion", 0.8),
            ("WFQ", "proportion", 1.1),
            ("WFQ", "nf1_delay_ns", 5e3),
            ("WFQ", "nf2_delay_ns", 4e3),
            ("NFVnice", "proportion", 1.2),
            ("WFQ, explicit", "batch_mean_pkts", 5.0),
            ("WFQ, explicit", "violated_ratio", 0.3),
        ]
    ):
        changed = rows()
        next(entry for entry in changed if entry["mode"] == mode)[key] = value
        if key == "nf1_delay_ns":
            next(entry for entry in changed if entry["mode"] == mode)["nf2_delay_ns"] = value
        assert verdicts(changed)[position] == "different", (mode, key)


def test_the_reason_for_a_broken_slo_is_of_the_worst_case() -> None:
    changed = rows()
    worst = [entry for entry in changed if entry["mode"] == "WFQ, explicit"][-1]
    worst |= {"violated_ratio": 0.3, "batch_mean_pkts": 5.0, "rate_pps": 0.98e6}
    reason = claims(changed)[-1].reason
    assert f"At {ASYMMETRIES[-1]} at 0.9, 60us" in reason
    assert "5.0 packets a batch where run to completion has 8.0" in reason
    assert "98.0% of its rate" in reason


def test_flows_of_a_daemon_between_two_readings() -> None:
    first = [{"name": "a", "pkts": 100, "delay_mean_ns": 1000.0}]
    last = [
        {"name": "a", "pkts": 300, "delay_mean_ns": 3000.0},
        {"name": "b", "pkts": 0, "delay_mean_ns": None},
    ]
    found = flows_between(first, last, 0.5)
    assert found["a"] == {"rate_pps": 400.0, "delay_mean_ns": 4000.0}
    assert found["b"] == {"rate_pps": 0.0, "delay_mean_ns": 0.0}
