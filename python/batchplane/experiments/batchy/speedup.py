# SPDX-License-Identifier: BSD-3-Clause
"""speedup.py - rates of controllers relative to null, and the claim that none is slower."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..common.experiment import Row
from ..common.verdict import Verdict, at_least, times


def over_null(rates: Mapping[str, float]) -> Row:
    """Fields of a row: the rate of each controller, and full and optimal relative to null."""
    return {
        **{f"{name}_rate_pps": rate for name, rate in rates.items()},
        "full_speedup": rates["full"] / rates["null"],
        "optimal_speedup": rates["optimal"] / rates["null"],
    }


def nowhere_slower(rows: list[Row], name_of: Callable[[Row], str]) -> list[Verdict]:
    """The paper's claim for full, and ours for optimal."""

    def of(key: str) -> dict[str, float]:
        return {name_of(row): row[key] for row in rows}

    over_full = {name_of(row): row["optimal_rate_pps"] / row["full_rate_pps"] for row in rows}
    return [
        at_least("nowhere slower than null (0.99)", of("full_speedup"), 0.99, times),
        at_least(
            "ours: optimal nowhere slower than null (0.98)", of("optimal_speedup"), 0.98, times
        ),
        at_least("ours: optimal nowhere slower than full (0.98)", over_full, 0.98, times),
    ]
