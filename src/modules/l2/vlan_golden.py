# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of VLAN tags, VRFs, and what copies packets or notes something with them."""

from __future__ import annotations

from typing import Any

from cases_routing import DESTINATIONS, lookup_model
from golden import Case, Fate, all_sorts, case, ether, good_ipv4, wire
from router_world import to
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Raw

TPIDS = (0x8100, 0x88A8)


def tagged() -> list[bytes]:
    ip = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=7, dport=8) / Raw(b"t" * 30)
    frames = [wire(ether() / Dot1Q(vlan=v, prio=v % 8) / ip) for v in (0, 1, 5, 100, 4094, 4095)]
    pairs = [(5, 6), (5, 7), (100, 1), (7, 7)]
    frames += [wire(ether() / Dot1AD(vlan=a) / Dot1Q(vlan=b, prio=3) / ip) for a, b in pairs]
    frames += [wire(ether() / Dot1Q(vlan=5) / Dot1Q(vlan=6) / ip)]
    frames += [wire(ether() / Dot1AD(vlan=5) / Dot1AD(vlan=6) / Dot1Q(vlan=7) / ip)]
    frames += [frames[2][:n] for n in range(12, 24)] + [frames[6][:n] for n in range(12, 28)]
    return frames


def tags_of(frame: bytes) -> list[bytes] | None:
    """The tags from the outside in; None when the frame ends among them."""
    tags = []
    at = 12
    while True:
        if len(frame) < at + 2:
            return None
        if int.from_bytes(frame[at : at + 2], "big") not in TPIDS:
            return tags
        tags.append(frame[at : at + 4])
        at += 4


def depth_fault(frame: bytes, most: int) -> str:
    # Deeper tags than the limit are not looked at: being cut there makes no difference.
    whole = tags_of(frame + bytes(64))
    assert whole is not None
    if len(frame) < 14 or (len(whole) <= most and tags_of(frame) is None):
        return "too_short"
    seen = (len(frame) - 14) // 4
    if len(whole) > most:
        return "too_many_tags" if seen >= most else "too_short"
    return ""


@case("vlan_push")
def vlan_push() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 2)
        if not fault and len(tags_of(frame) or []) == 2:
            fault = "too_many_tags"
        tag = b"\x81\x00" + ((5 << 13) | (1 << 12) | 100).to_bytes(2, "big")
        return ("drop", fault) if fault else ("out", 0, frame[:12] + tag + frame[12:])

    return Case("vlan_push", {"vid": 100, "pcp": 5, "dei": True}, all_sorts(41) + tagged(), model)


@case("vlan_push", "service")
def vlan_push_service() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 3)
        tags = tags_of(frame) or []
        if not fault and len(tags) == 3:
            fault = "too_many_tags"
        priority = tags[0][2] >> 5 if tags else 0
        tag = b"\x88\xa8" + (priority << 13 | 4094).to_bytes(2, "big")
        return ("drop", fault) if fault else ("out", 0, frame[:12] + tag + frame[12:])

    params = {"vid": 4094, "pcp": -1, "tpid": "0x88a8", "max_tags": 3}
    return Case("vlan_push", params, all_sorts(42) + tagged(), model)


@case("vlan_pop")
def vlan_pop() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 2)
        if not fault and not tags_of(frame):
            fault = "not_tagged"
        return ("drop", fault) if fault else ("out", 0, frame[:12] + frame[16:])

    return Case("vlan_pop", {}, all_sorts(43) + tagged(), model)


@case("vlan_pop", "all")
def vlan_pop_all() -> Case:
    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 3)
        bare = frame[:12] + frame[12 + 4 * len(tags_of(frame) or []) :]
        return ("drop", fault) if fault else ("out", 0, bare)

    params = {"tags": "all", "untagged": "pass", "max_tags": 3}
    return Case("vlan_pop", params, all_sorts(44) + tagged(), model)


RULES: list[dict[str, Any]] = [
    {"vid": 5, "gate": 1},
    {"vid": 5, "inner_vid": 6, "gate": 2, "vrf": 9},
    {"vid": 100, "gate": 3},
    {"vid": 7, "inner_vid": 7, "gate": 0},
    {"vid": 4094, "gate": 1},
]


def split_model(pops: bool, default: int | None) -> Any:
    rules = {(r["vid"], r.get("inner_vid")): r["gate"] for r in RULES}

    def model(frame: bytes) -> Fate:
        fault = depth_fault(frame, 2)
        tags = tags_of(frame) or []
        if not fault and not tags:
            fault = "not_tagged"
        if fault:
            return ("drop", fault)
        vids = [int.from_bytes(tag[2:], "big") & 0xFFF for tag in tags]
        if len(vids) == 2 and (vids[0], vids[1]) in rules:
            gate, n_matched = rules[vids[0], vids[1]], 2
        elif (vids[0], None) in rules:
            gate, n_matched = rules[vids[0], None], 1
        elif default is None:
            return ("drop", "no_match")
        else:
            return ("out", default, frame)
        return ("out", gate, frame[:12] + frame[12 + 4 * n_matched :] if pops else frame)

    return model


@case("vlan_split")
def vlan_split() -> Case:
    frames = all_sorts(45) + tagged()
    return Case("vlan_split", {"rules": RULES}, frames, split_model(False, None))


@case("vlan_split", "pop")
def vlan_split_pop() -> Case:
    params = {"rules": RULES, "pop": True, "default_gate": 4}
    return Case("vlan_split", params, all_sorts(46) + tagged(), split_model(True, 4))


@case("set_meta")
def set_meta() -> Case:
    params = {"vrf": 3, "mark": 9, "tunnel_id": 4}
    return Case("set_meta", params, all_sorts(47), lambda frame: ("out", 0, frame))


@case("vrf_lookup")
def vrf_lookup() -> Case:
    tables: dict[int, dict[str, int | str]] = {
        1: {"10.0.0.0/8": 1, "10.1.0.0/16": 2, "172.16.0.0/12": "route_drop"},
        40000: {"0.0.0.0/0": 0, "10.1.1.128/25": 3},
    }
    vrfs = []
    for number, table in tables.items():
        routes = [
            {"prefix": prefix, "drop": True} if isinstance(gate, str) else
            {"prefix": prefix, "gate": gate}
            for prefix, gate in table.items()
        ]  # fmt: skip
        vrfs.append({"vrf": number, "routes": routes})
    frames = [to(dst) for dst in DESTINATIONS] * 3 + all_sorts(48)
    order = (1, 1, 1, 40000, 40000, 2, 0, 40000, 1)
    metas = [{"vrf": order[i % len(order)]} for i in range(len(frames))]
    models = {number: lookup_model(table) for number, table in tables.items()}

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        found = models.get(meta["vrf"])
        return found(frame) if found else ("drop", "unknown_vrf")

    return Case("vrf_lookup", {"vrfs": vrfs}, frames, model, {"connected_gates": 4}, metas)


@case("mirror")
def mirror() -> Case:
    n_seen = 0

    def model(frame: bytes) -> list[Fate]:
        nonlocal n_seen
        n_seen += 1
        fates: list[Fate] = [("out", 0, frame)]
        if n_seen % 3 == 1:
            fates.append(("emit", 1, frame[:50]))
        return fates

    params = {"sample_one_in": 3, "snap_bytes": 50}
    frames = good_ipv4() + all_sorts(49) + tagged()
    return Case("mirror", params, frames, model, {"connected_gates": 2})
