# SPDX-License-Identifier: BSD-3-Clause
"""fig8b.py - speed-up over null by number of branches and burstiness of the input (figure 8b).

The input has b consecutive packets of each flow. If bursts are as long as batches, each branch gets
large batches without any buffer.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...base.units import short_rate
from ...lang.expression import ip
from ...lang.pipeline import Options, Pipeline
from ...plots.base import COLOURS
from ..common.case import NO_LIMIT, Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, times
from .speedup import nowhere_slower, over_null

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLLERS = ("null", "full", "optimal")
LEAVES = (1, 2, 4, 8, 16, 32)
BURSTS = (1, 2, 4, 8, 10, 12, 16, 24, 32)
_QUICK_BURSTS = (1, 2, 4, 8, 12, 16, 32)
BACKBONE_BURST = 1.13  # of a CAIDA trace, according to the paper
_LONG_BURST = 10
_FADED = 1.25
_PER_BATCH_CYCLES, _PER_PKT_CYCLES = 1000, 100


def bursts(setup: Setup) -> tuple[int, ...]:
    """The numbers of consecutive packets of a flow."""
    return _QUICK_BURSTS if setup.is_quick else BURSTS


@lru_cache(maxsize=16)
def pipeline(leaves: int) -> str:
    """A tree of equal leaves, split by destination, at the rate that the worker can take."""
    built = Pipeline(f"bursts_{leaves}", Options(idle="hold"))
    port = built.port("link", "ring", size_pkts=64)
    addresses = [ip("20.0.0.1", i) for i in range(leaves)]
    flows = [{"name": f"flow_{i}", "dst_ip": address} for i, address in enumerate(addresses)]
    built.generator("load", port, saturate=True, flows=flows)
    entry = built.module("in", "port_in", port=port)
    split = built.module(
        "split", "exact_match",
        fields=[{"offset": 30, "size_bytes": 4}],
        rules=[{"values": [address], "gate": i} for i, address in enumerate(addresses)],
    )  # fmt: skip
    entry >> split
    for i in range(leaves):
        leaf = built.module(
            f"leaf_{i}", "cost", age_limit=NO_LIMIT,
            cost_per_batch_cycles=_PER_BATCH_CYCLES, cost_per_pkt_cycles=_PER_PKT_CYCLES,
        )  # fmt: skip
        end = built.module(f"out_{i}", "sink")
        split[i] >> leaf >> end
        built.flow(f"flow_{i}", [entry, split, leaf, end], delay_slo="5ms")
    return json.dumps({**built.to_json(), "source_map": {}})


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Every number of leaves at every burstiness."""
    warmup, periods, period_ns = (15, 20, 10_000_000) if setup.is_quick else (40, 40, 100_000_000)
    cells = [(n, burst) for n in LEAVES for burst in bursts(setup)]
    results = yield [
        Case(
            f"{n}/{burst}/{controller}",
            pipeline(n),
            controller,
            trace={"kind": "bursts", "groups": n, "burst": burst},
            costs=setup.costs,
            period_ns=period_ns,
            warmup_periods=warmup,
            periods=periods,
        )
        for n, burst in cells
        for controller in CONTROLLERS
    ]
    rows = [_row(n, burst, results) for n, burst in cells]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(n: int, burst: int, results: Results) -> Row:
    runs = {name: results[f"{n}/{burst}/{name}"] for name in CONTROLLERS}
    rates = {name: run["rate_pps"] for name, run in runs.items()}
    return {
        "leaves": n,
        "burst_pkts": burst,
        "null_batch_pkts": runs["null"]["batch_mean_pkts"],
        **over_null(rates),
    }


def _name(row: Row) -> str:
    return f"{row['leaves']} leaves, {row['burst_pkts']} in a row"


def claims(rows: list[Row]) -> list[Verdict]:
    """The paper's claims about figure 8b."""

    def of(key: str, least: int, most: int, leaves: int = 1) -> dict[str, float]:
        return {
            _name(row): row[key]
            for row in rows
            if least <= row["burst_pkts"] <= most and row["leaves"] >= leaves
        }

    return [
        at_least(
            "at a burstiness as of a backbone (1) full gains 1.5 times from 8 branches on",
            of("full_speedup", 1, 1, 8), 1.5, times,
        ),
        at_most(
            f"the gain fades when more than {_LONG_BURST} are in a row (below {_FADED} times)",
            of("full_speedup", _LONG_BURST + 1, 1 << 30), _FADED, times,
        ),
        *nowhere_slower(rows, _name),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """One line per number of branches, for full and for optimal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.8), layout="constrained")
    figure.suptitle(
        f"speed-up over null by burstiness, tree of equal leaves ({setup.origin})\n"
        "paper: the gain fades when more than 10 packets of a flow are in a row",
        fontsize=11,
    )
    steps = bursts(setup)
    panels: Any = figure.subplots(1, 2, sharey=True)
    for axis, name in zip(panels, ("full", "optimal"), strict=True):
        for i, n in reversed(list(enumerate(LEAVES))):  # equal points are drawn inside each other
            mine = [row[f"{name}_speedup"] for row in rows if row["leaves"] == n]
            axis.plot(steps, mine, "o-", color=COLOURS[i], label=f"{n}", markersize=3 + 2 * i)
        axis.axvline(BACKBONE_BURST, color="black", linestyle=":", linewidth=1)
        axis.axvline(_LONG_BURST, color="black", linestyle="--", linewidth=1)
        axis.set_xscale("log", base=2)
        axis.set_xticks([b for b in steps if b & (b - 1) == 0],
                        [str(b) for b in steps if b & (b - 1) == 0])  # fmt: skip
        axis.minorticks_off()
        axis.set_xlabel("packets of a flow in a row (dotted: CAIDA's 1.13; dashed: 10)")
        axis.set_title(f"{name} / null", fontsize=10)
        axis.grid(True, color="#dddddd", linewidth=0.6)
    panels[0].set_ylabel("speed-up")
    handles, labels = panels[1].get_legend_handles_labels()
    panels[1].legend(handles, labels, title="branches", fontsize=8, title_fontsize=8)
    return figure


COLUMNS = (
    ("leaves", "branches", shown),
    ("burst_pkts", "in a row", shown),
    ("null_batch_pkts", "null's batch", lambda value: "-" if value is None else f"{value:.1f}"),
    ("null_rate_pps", "null", short_rate),
    ("full_rate_pps", "full", short_rate),
    ("optimal_rate_pps", "optimal", short_rate),
    ("full_speedup", "full / null", times),
    ("optimal_speedup", "optimal / null", times),
)

EXPERIMENT = Experiment(
    "fig8b", "speed-up by branches and burstiness of the input (figure 8b)", plan, "fig8b",
    CONTROLLERS,
    "Cost modules (1000 + 100 n cycles) behind an exact match; 40 periods of 100 ms after 40.",
)  # fmt: skip
