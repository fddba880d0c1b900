# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of exact_match."""

from __future__ import annotations

from golden import Case, Fate, all_sorts, case, other_protocols


@case("exact_match")
def exact_match() -> Case:
    fields = [
        {"offset": 12, "size_bytes": 2},
        {"offset": 23, "size_bytes": 1},
        {"offset": 30, "size_bytes": 4, "mask": "0xffffff00"},
        {"offset": 36, "size_bytes": 2},
    ]
    rules = {
        (0x0800, 17, "192.168.1.0", 53): 0,
        (0x0800, 6, "192.168.1.0", 443): 2,
        (0x0800, 17, "10.2.2.0", 9): 1,
    }

    def model(frame: bytes) -> Fate:
        if len(frame) < 38:
            return ("drop", "too_short")
        network = ".".join(str(b) for b in frame[30:33]) + ".0"
        ether_type, port = (int.from_bytes(frame[at : at + 2], "big") for at in (12, 36))
        gate = rules.get((ether_type, frame[23], network, port))
        return ("drop", "no_match") if gate is None else ("out", gate, frame)

    listed = [{"values": list(values), "gate": gate} for values, gate in rules.items()]
    frames = all_sorts() + other_protocols()
    return Case("exact_match", {"fields": fields, "rules": listed}, frames, model)
