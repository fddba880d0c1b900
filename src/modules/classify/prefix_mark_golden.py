# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of modules that mark packets."""

from __future__ import annotations

from golden import Case, Fate, all_sorts, case


@case("prefix_mark")
def prefix_mark() -> Case:
    def model(frame: bytes) -> Fate:
        return ("out", 0, frame)

    params = {"prefixes": [{"prefix": "10.0.0.0/8", "mark": 7}, {"prefix": "fd00::/8", "mark": 9}]}
    return Case("prefix_mark", params, all_sorts(7), model)
