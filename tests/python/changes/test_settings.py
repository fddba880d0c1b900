# SPDX-License-Identifier: BSD-3-Clause
"""test_settings.py - parsing of live settings."""

from __future__ import annotations

from typing import Any

import pytest

from batchplane.base.problems import BadInput
from batchplane.changes.arguments import parse_arguments
from batchplane.changes.settings import parse_settings

NAMES = {
    "module": ["in", "ttl_0", "ttl_1"],
    "flow": ["flow_0"],
    "generator": ["load"],
    "port": ["p0"],
}


@pytest.mark.parametrize(
    ("word", "sets"),
    [
        ("ttl_0.trigger=8", [{"what": "trigger", "module": "ttl_0", "trigger_pkts": 8}]),
        (
            "ttl_*.trigger=0",
            [{"what": "trigger", "module": f"ttl_{i}", "trigger_pkts": 0} for i in (0, 1)],
        ),
        (
            "ttl_1.age_limit=50us",
            [{"what": "age_limit", "module": "ttl_1", "age_limit_ns": 50_000}],
        ),
        ("ttl_1.age_limit=none", [{"what": "age_limit", "module": "ttl_1", "age_limit_ns": None}]),
        ("in.poll_pkts=8", [{"what": "poll_pkts", "module": "in", "poll_pkts": 8}]),
        ("flow_0.slo=1ms", [{"what": "slo", "flow": "flow_0", "delay_slo_ns": 1_000_000}]),
        ("idle=hold", [{"what": "idle", "mode": "hold"}]),
        ("placement.policy=power", [{"what": "placement", "policy": "power"}]),
        ("placement.watt_cap=80", [{"what": "placement", "watt_cap": 80}]),
        (
            "placement.ttl_0.budget=200us",
            [{"what": "placement", "module": "ttl_0", "budget_ns": 200_000}],
        ),
        ("load.rate=2.5M", [{"what": "generator", "name": "load", "rate_pps": 2.5e6}]),
        ("load.on=false", [{"what": "generator", "name": "load", "is_on": False}]),
        ("flow_0.slo=none", [{"what": "slo", "flow": "flow_0", "delay_slo_ns": 0}]),
        (
            "load.saturate=true",
            [{"what": "generator", "name": "load", "is_saturating": True}],
        ),
        ("load.weights=3,1", [{"what": "generator", "name": "load", "weights": [3.0, 1.0]}]),
        ("p0.mtu_bytes=9000", [{"what": "port", "name": "p0", "mtu_bytes": 9000}]),
        ("p0.rate=5", [{"what": "port", "name": "p0", "rate": 5}]),
    ],
)
def test_settings(word: str, sets: list[dict[str, Any]]) -> None:
    assert parse_settings([word], NAMES) == sets


@pytest.mark.parametrize(
    ("word", "line"),
    [
        (
            "ttl_0",
            "command line: ttl_0: 'ttl_0' is not a setting (NAME.SETTING=VALUE, such as ttl.trigger=8)",
        ),
        ("trigger=8", "command line: trigger=8: 'trigger' needs a name (NAME.trigger=8)"),
        ("idle=sleep", "command line: idle=sleep: idle is release or hold, not 'sleep'"),
        (
            "ttl_2.trigger=8",
            "command line: ttl_2.trigger=8: there is no module 'ttl_2' (did you mean 'ttl_0'?)",
        ),
        (
            "ttl_0.trigger=x",
            "command line: ttl_0.trigger=x: 'x' is not a number of packets (for example ttl.trigger=8)",
        ),
        (
            "ttl_0.age_limit=5",
            "command line: ttl_0.age_limit=5: '5' is not a duration (with a unit: 50us, 1ms; or none)",
        ),
        (
            "ttl_0.triger=8",
            "command line: ttl_0.triger: unknown setting 'triger' (did you mean 'trigger'?)",
        ),
        (
            "load.rate=fast",
            "command line: load.rate=fast: 'fast' is not a rate (packets per second: 5M, 250k, 1000)",
        ),
        ("load.on=perhaps", "command line: load.on=perhaps: 'perhaps' is not true or false"),
        ("load.weights=a", "command line: load.weights=a: 'a' are not weights (for example 3,1,1)"),
    ],
)
def test_mistakes(word: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings([word], NAMES)
    assert caught.value.lines() == [line]


def test_all_mistakes_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings(["idle=x", "ttl_0.trigger=1", "b.slo=1ms"], NAMES)
    assert len(caught.value.lines()) == 2


def test_arguments_of_a_modules_command() -> None:
    assert parse_arguments(
        ["prefix=10.0.0.0/8", "gate=1", "mac=02:00:00:00:00:01", "hold=5ms"]
    ) == {"prefix": "10.0.0.0/8", "gate": 1, "mac": "02:00:00:00:00:01", "hold_ns": 5_000_000}
    with pytest.raises(BadInput, match="'x' is not KEY=VALUE"):
        parse_arguments(["x"])
