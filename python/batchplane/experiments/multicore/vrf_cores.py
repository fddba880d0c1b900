# SPDX-License-Identifier: BSD-3-Clause
"""vrf_cores.py - VRF(2,4) on one core and on three: the runs that figures 5 and 6 show.

The VLAN splitter runs on the first core, each virtual router on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...plots.base import legend_below
from ..common.case import NO_LIMIT, Case
from ..common.experiment import Results, Setup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The paper's SLO, and one that is as tight here as the paper's was there: these costs are less than
# half of those of its machine, where one core needs 96 us with full batches.
SLO_NS, TIGHT_SLO_NS = 72_000, 28_000
MASTER_PERIODS = 10
MODULE, FLOW = (
    "first_0_0",
    "flow_0_0",
)  # the buffer before the first flow's group processing and ACL
# A packet to another core costs nothing but the ring, or what was measured (profiling.md).
_FREE_LOOP = {"hop_send_per_pkt_ns": 0.0, "hop_take_per_pkt_ns": 0.0}

# By label: controller, and whether the pipeline is spread over three cores.
RUNS: Mapping[str, tuple[str, bool]] = {
    "single core": ("full", False),
    "naive": ("primal(static)", True),
    "multicore": ("primal(fixstep)", True),
    "diminishing": ("primal(diminishing)", True),
    "optimal": ("optimal", True),
}
FREE, DEAR = "hop 1 ns", "hop 39 ns"


def make_case(setup: Setup, run: str, hop: str, ring_pkts: int = 64, slo_ns: int = SLO_NS) -> Case:
    """One run at full load; `hop` selects the cost of a packet from another core."""
    controller, is_spread = RUNS[run]
    return Case(
        f"{run}/{hop}/{ring_pkts}/{slo_ns}",
        "vrf",
        controller,
        {
            "vrfs": 2, "nexthops": 4, "acl_last": 1, "saturate": True, "age_limit": NO_LIMIT,
            "spread": int(is_spread), "ring_pkts": ring_pkts,
        },
        settings={"master_periods": MASTER_PERIODS} if controller.startswith("primal") else {},
        sets=("idle=hold", f"flow_*.slo={slo_ns}ns"),
        costs="paper",
        loop=_FREE_LOOP if hop == FREE else {},
        period_ns=2_000_000 if setup.is_quick else 10_000_000,
        periods=60,
        watched_module=MODULE,
        watched_flow=FLOW,
    )  # fmt: skip


def settled(values: list[Any]) -> list[Any]:
    """The last third: after the master's first four steps."""
    return values[2 * len(values) // 3 :]


def row_of(results: Results, case: Case, run: str, hop: str) -> dict[str, Any]:
    """Rate and first flow's delay once settled."""
    series = results[case.key]["series"]
    delays = settled(series["delay_ns"])
    return {
        "run": run,
        "hop": hop,
        "slo_ns": max(series["slo_ns"]),
        "ring_pkts": case.params["ring_pkts"],
        "rate_pps": fmean(settled(series["out_pps"])),
        "delay_ns": fmean(delays),
        "trigger_pkts": fmean(settled(series["trigger_pkts"])),
        "violated_ratio": fmean([float(v) for v in settled(series["is_violated"])]),
    }


def two_panels(title: str, top_label: str, low_label: str) -> tuple[Figure, Axes, Axes]:
    """Two panels over control periods, the lower one with the tight SLO."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 6.5), layout="constrained")
    figure.suptitle(f"{title} (simulated, costs: paper)", fontsize=11)
    top, low = figure.subplots(2, 1, sharex=True)
    low.axhline(TIGHT_SLO_NS / 1e3, color="black", linestyle=":")
    top.set_ylabel(top_label)
    low.set_ylabel(low_label)
    low.set_xlabel("control period")
    for axis in (top, low):
        axis.grid(True, color="#dddddd", linewidth=0.6)
    return figure, top, low


def finish(figure: Figure, top: Axes, low: Axes) -> Figure:
    """Call it once all lines are drawn: axes start at 0, with a legend of the upper panel."""
    for axis in (top, low):
        axis.set_ylim(bottom=0)
    legend_below(figure, top)
    return figure
