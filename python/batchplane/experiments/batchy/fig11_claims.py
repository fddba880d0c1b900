# SPDX-License-Identifier: BSD-3-Clause
"""fig11_claims.py - the paper's claims about figure 11, and our own."""

from __future__ import annotations

from ..common.experiment import Row
from ..common.verdict import Verdict, at_least, at_most, in_range, percent, times

# Up to this error a ratio of rates counts as proportional.
_PROPORTIONAL = 0.05
ASYMMETRIES = ("rate", "cost")


def claims(rows: list[Row]) -> list[Verdict]:
    """The verdicts of the figure."""
    full = {(row["asymmetry"], row["mode"]): row for row in rows if not row["slo"]}
    return [
        at_most(
            "run to completion is rate-proportional (NF1 / NF2 is off by 5 % of the offered ratio)",
            {what: abs(full[what, "RTC"]["proportion"] - 1) for what in ASYMMETRIES},
            _PROPORTIONAL, percent,
        ),
        at_least(
            "WFQ with equal weights is not (off by 20 % and more)",
            {what: abs(full[what, "WFQ"]["proportion"] - 1) for what in ASYMMETRIES},
            0.2, percent,
        ),
        at_least(
            "and its delay is larger than that of run to completion: the slower flow's",
            {
                what: max(full[what, "WFQ"][f"{nf}_delay_ns"] for nf in ("nf1", "nf2"))
                / max(full[what, "RTC"][f"{nf}_delay_ns"] for nf in ("nf1", "nf2"))
                for what in ASYMMETRIES
            },
            1.0, times,
        ),
        at_least(
            "and either flow's",
            {
                f"{nf} of asymmetric {what}":
                full[what, "WFQ"][f"{nf}_delay_ns"] / full[what, "RTC"][f"{nf}_delay_ns"]
                for what in ASYMMETRIES for nf in ("nf1", "nf2")
            },
            1.0, times,
        ),
        at_most(
            "NFVnice's shares, rate x cost, are rate-proportional again (off by 5 % at most)",
            {what: abs(full[what, "NFVnice"]["proportion"] - 1) for what in ASYMMETRIES},
            _PROPORTIONAL, percent,
        ),
        in_range(
            "ours: under the same SLO both modes reach the same batches (explicit / RTC)",
            _ratios(rows, "batch_mean_pkts"), 0.9, 1.1, times,
        ),
        at_most(
            "ours: periods in which the explicit mode breaks a promise that RTC keeps",
            _broken(rows), 0.05, percent,
        ).because(
            _why_broken(rows)
        ),
    ]  # fmt: skip


def _pairs(rows: list[Row]) -> dict[str, tuple[Row, Row]]:
    """For each load and SLO: run to completion, and the explicit model."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["slo"]:
            found.setdefault(f"{row['asymmetry']} at {row['load']}, {row['slo']}", []).append(row)
    return {name: (pair[0], pair[1]) for name, pair in found.items()}


def _ratios(rows: list[Row], key: str) -> dict[str, float]:
    return {name: explicit[key] / rtc[key] for name, (rtc, explicit) in _pairs(rows).items()}


def _why_broken(rows: list[Row]) -> str:
    """Describes the worst case, only from its numbers."""
    broken = _broken(rows)
    if not broken:
        return ""
    worst = max(broken, key=lambda name: broken[name])
    rtc, explicit = _pairs(rows)[worst]
    return (
        f"At {worst} the explicit mode executes {explicit['batch_mean_pkts']:.1f} packets a batch "
        f"where run to completion has {rtc['batch_mean_pkts']:.1f}, and carries "
        f"{explicit['rate_pps'] / rtc['rate_pps']:.1%} of its rate. So close to saturation what "
        "is not carried is a backlog, and late for all flows at once."
    )


def _broken(rows: list[Row]) -> dict[str, float]:
    return {
        name: explicit["violated_ratio"] or 0.0
        for name, (rtc, explicit) in _pairs(rows).items()
        if (rtc["violated_ratio"] or 0.0) <= 0.05
    }
