# SPDX-License-Identifier: BSD-3-Clause
"""fairness_claims.py - the claims of the paper's appendix A, compared with our numbers.

The appendix has no numbers except those of figure 11; the bounds here are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..common.experiment import Row
from ..common.verdict import Verdict, at_least, at_most, percent, times

_PROPORTIONAL = 0.05  # tolerance for a ratio of rates
_SHARED = ("rate", "cost")


def claims(rows: Sequence[Row]) -> list[Verdict]:
    """One verdict per sentence of the appendix."""

    def off(mode: str) -> dict[str, float]:
        return {
            f"{row['part']} x {row['factor']}": abs(row["proportion"] - 1)
            for row in rows
            if row["part"] in _SHARED and row["mode"] == mode
            and (mode != "WFQ" or row["factor"] > 1)
        }  # fmt: skip

    def drops(mode: str) -> dict[str, float]:
        mine = [row for row in rows if row["mode"] == mode and not row["load"]]
        return {
            f"{row['part']} x {row['factor']}": row["late_drops"]
            for row in mine
            if row["part"] != "chain"
        }

    chain = {row["mode"]: row["rate_pps"] for row in rows if row["part"] == "chain"}
    behind = [row for row in rows if row["part"] == "behind"]
    return [
        at_most(
            "run to completion is rate-proportional, whatever is asymmetric (off by 5 % at most)",
            off("RTC"), _PROPORTIONAL, percent,
        ),
        at_least(
            "WFQ with equal weights is not (off by 10 % and more from 2 times on)",
            off("WFQ"), 0.1, percent,
        ),
        at_most(
            "WFQ with weights by hand, rate x cost, comes close (10 %)",
            off("WFQ, weights by hand"), 0.1, percent,
        ),
        at_most("run to completion drops nothing within", drops("RTC"), 0.0, percent),
        at_least(
            "WFQ drops what it has worked on when queues overflow (at some factor)",
            {"worst": max(
                row["late_drops"] for row in behind if row["mode"] == "WFQ" and not row["load"]
            )},
            0.01, percent,
        ),
        at_most(
            "running the scheduler costs rate (a chain of four under WFQ, of run to completion)",
            {"chain": chain["WFQ"] / chain["RTC"]}, 0.999, times,
        ),
        at_least(
            "part load: the heavy flow waits longer under WFQ than run to completion",
            _waits(behind, "heavy"), 1.0, times,
        ),
        at_least(
            "and the light flow beside it, too", _waits(behind, "light"), 1.0, times,
        ),
    ]  # fmt: skip


def _waits(rows: Sequence[Row], flow: str) -> dict[str, float]:
    """A flow's mean delay under WFQ over that of run to completion, at part loads."""
    by = {(row["factor"], row["load"], row["mode"]): row[f"{flow}_delay_ns"] for row in rows}
    return {
        f"{factor} times at {load:g}": delay_ns / by[factor, load, "RTC"]
        for (factor, load, name), delay_ns in by.items()
        if name == "WFQ" and load
    }
