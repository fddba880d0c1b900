# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of modules that leave a frame as it is, or take it."""

from __future__ import annotations

from golden import (
    Case,
    all_sorts,
    case,
    same,
)


@case("null")
def null() -> Case:
    return Case("null", {}, all_sorts(), same)


@case("merge")
def merge() -> Case:
    return Case("merge", {}, all_sorts(), same)


@case("counter")
def counter() -> Case:
    return Case("counter", {"by_size": True}, all_sorts(), same)


@case("meter")
def meter() -> Case:
    return Case("meter", {}, all_sorts(), same)


@case("cost")
def cost() -> Case:
    return Case("cost", {"cost_per_batch_ns": 100, "cost_per_pkt_ns": 2}, all_sorts(), same)


@case("sink")
def sink() -> Case:
    return Case("sink", {}, all_sorts(), lambda _: ("consume",))


@case("drop")
def drop() -> Case:
    return Case("drop", {}, all_sorts(), lambda _: ("drop", "discarded"))


@case("set_meta")
def set_meta() -> Case:
    params = {"vrf": 3, "mark": 9, "tunnel_id": 4}
    return Case("set_meta", params, all_sorts(47), lambda frame: ("out", 0, frame))
