# SPDX-License-Identifier: BSD-3-Clause
"""test_placement_laws.py - a daemon that places modules begins with what they cost on a worker."""

from __future__ import annotations

from typing import Any

from batchplane.control.placement import with_laws


def pipeline(**placement: Any) -> dict[str, Any]:
    return {
        "name": "laws_of_a_test",
        "modules": {
            "in": {"kind": "source", "params": {}},
            "ttl": {"kind": "ttl", "params": {}, "device": {"on": ["inline"]}},
            "own": {"kind": "made_up", "params": {}, "device": {"on": ["inline"]}},
        },
        "placement": {"policy": "power", **placement},
    }


def test_kinds_with_a_device_get_the_law_of_their_costs() -> None:
    laws = with_laws(pipeline())["placement"]["laws"]
    assert set(laws) == {"ttl"}, "nobody has measured the other, and the source has no device"
    assert laws["ttl"]["batch_ns"] > 0
    assert laws["ttl"]["pkt_ns"] > 0


def test_what_is_given_stays() -> None:
    given = {"ttl": {"batch_ns": 1.0, "pkt_ns": 2.0}}
    assert with_laws(pipeline(laws=given))["placement"]["laws"] == given


def test_without_placement_nothing_is_added() -> None:
    plain = pipeline()
    del plain["placement"]
    assert with_laws(plain) == plain
