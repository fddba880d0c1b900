# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of mark_split."""

from __future__ import annotations

from typing import Any

from golden import Case, Fate, all_sorts, case


@case("mark_split")
def mark_split() -> Case:
    frames = all_sorts(67)
    metas = [{"mark": (0, 4, 5, 6, 7, 8, 1 << 31)[i % 7]} for i in range(len(frames))]

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        gate = meta["mark"] - 5
        return ("out", gate, frame) if 0 <= gate < 3 else ("drop", "no_match")

    return Case("mark_split", {"first": 5}, frames, model, {"connected_gates": 3}, metas)
