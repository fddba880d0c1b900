# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of what copies packets."""

from __future__ import annotations

from golden import (
    Case,
    Fate,
    all_sorts,
    case,
    good_ipv4,
    same,
    tagged,
)


@case("pcap_tap")
def pcap_tap() -> Case:
    return Case("pcap_tap", {"path": "${TMP}/tap.pcapng", "snaplen_bytes": 60}, all_sorts(), same)


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
