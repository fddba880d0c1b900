# SPDX-License-Identifier: BSD-3-Clause
"""table2_claims.py - the paper's claims about table 2 and figure 7, compared with our rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from ..common.experiment import Row
from ..common.verdict import (
    Verdict,
    at_least,
    at_most,
    in_range,
    late_there,
    no_more_under,
    percent,
    times,
)
from .table2_configs import NFVNICE, WFQ

Ratios = Callable[[str, str, str, Sequence[str]], dict[str, float]]
Values = Callable[[str, str, Sequence[str]], dict[str, float]]

_WIDE = ("L2L3(16)", "GW(16)", "GW(64)", "VRF(16,4)", "VRF(12,8)")  # 16 paths or more
_SCHEDULERS = ((WFQ, "WFQ (the scripts' NFVnice)"), (NFVNICE, "NFVnice by its own paper"))
_PROMPT = 0.001  # a controller that is late in no more periods keeps the SLO
_ALIKE = 0.15  # tolerance for the speed-up on a trace relative to even load


def claims(rows: Sequence[Row]) -> list[Verdict]:
    """One verdict per claim; pipelines without buffers are left out."""
    rows = [row for row in rows if row["batch_mean_pkts"] is not None]
    by = {(row["pipeline"], row["controller"]): row for row in rows}
    pipelines = list(dict.fromkeys(row["pipeline"] for row in rows))
    split = [name for name in pipelines if name != "RC(16)"]

    def ratios(key: str, of: str, to: str, names: Sequence[str]) -> dict[str, float]:
        pairs = ((name, by[name, of][key], by[name, to][key]) for name in names)
        return {name: mine / other for name, mine, other in pairs if other > 0}

    def values(key: str, of: str, names: Sequence[str]) -> dict[str, float]:
        # None: the machine disturbed every period.
        found = {name: by[name, of][key] for name in names}
        return {name: value for name, value in found.items() if value is not None}

    wide = [name for name in _WIDE if name in pipelines]
    wide += [name for name in pipelines if name.startswith("*")]
    robot = [name for name in pipelines if name == "RC(16)"]
    found = [
        in_range(
            "null works with 2 to 3 packets a batch at 16 to 64 paths",
            values("batch_mean_pkts", "null", wide), 2.0, 3.0, lambda v: f"{v:.1f}",
        ),
        in_range(
            "full reaches 70 to 80 % of max's mean batch",
            ratios("batch_mean_pkts", "full", "max", split), 0.7, 0.8, percent,
        ),
        in_range(
            "full carries 1.5 to 2.5 times null's rate",
            ratios("rate_pps", "full", "null", split), 1.5, 2.5, times,
        ).because(
            no_more_under(
                "max",
                ratios("rate_pps", "full", "null", split),
                ratios("rate_pps", "max", "null", split), 1.5, times,
            )
        ),
        in_range(
            "robot control carries 7.5 times null's rate under full (within 10 %)",
            ratios("rate_pps", "full", "null", robot), 6.75, 8.25, times,
        ),
        at_least(
            "full comes close to max's rate or passes it (close: 0.9)",
            ratios("rate_pps", "full", "max", pipelines), 0.9, times,
        ),
        at_most(
            "full violates an SLO in at most 9 % of periods",
            values("violated_ratio", "full", pipelines), 0.09, percent,
        ),
        at_most(
            "and then by 1 to 2 %", values("excess_mean_ratio", "full", pipelines), 0.02, percent
        ),
        at_most(
            "with delta = 0.2 full violates none",
            values("violated_ratio", "full, delta 0.2", pipelines), 0.0, percent,
        ),
    ]  # fmt: skip
    beside = _on_traces(ratios, pipelines) + _explicit(ratios, split, {c for _, c in by})
    return found + beside + ours(ratios, values, pipelines)


def _on_traces(ratios: Ratios, pipelines: Sequence[str]) -> list[Verdict]:
    """A replayed trace compared with even load."""
    gains = ratios("rate_pps", "full", "null", pipelines)
    on_trace = {
        name: gains[name] / gains[name[1:]]
        for name in gains
        if name.startswith("*") and name[1:] in gains
    }
    if not on_trace:
        return []
    return [
        in_range(
            f"a backbone's trace and even load agree: full's speed-up (within {_ALIKE:.0%})",
            on_trace, 1 - _ALIKE, 1 / (1 - _ALIKE), times,
        )
    ]  # fmt: skip


def _explicit(ratios: Ratios, names: Sequence[str], known: Set[str]) -> list[Verdict]:
    """Full compared with the engine's explicit scheduling."""
    return [
        in_range(
            f"full carries 1.5 to 3 times what {label} carries",
            ratios("rate_pps", "full", name, names), 1.5, 3.0, times,
        )
        for name, label in _SCHEDULERS
        if name in known
    ]  # fmt: skip


def ours(ratios: Ratios, values: Values, pipelines: Sequence[str]) -> list[Verdict]:
    """Our own claims about `optimal`."""
    return [
        at_least(
            "ours: optimal carries at least full's rate (0.98 allowed)",
            ratios("rate_pps", "optimal", "full", pipelines), 0.98, times,
        ).because(
            late_there(
                "full", ratios("rate_pps", "optimal", "full", pipelines),
                values("violated_ratio", "full", pipelines), 0.98, _PROMPT,
            )
        ),
        at_least(
            "ours: optimal carries at least null's rate (0.98 allowed)",
            ratios("rate_pps", "optimal", "null", pipelines), 0.98, times,
        ),
        at_least(
            "ours: optimal keeps 0.95 of max's rate at 80 % of max's delay",
            ratios("rate_pps", "optimal", "max", pipelines), 0.95, times,
        ),
        at_most(
            "ours: optimal violates an SLO in at most 0.1 % of periods",
            values("violated_ratio", "optimal", pipelines), _PROMPT, percent,
        ),
    ]  # fmt: skip
