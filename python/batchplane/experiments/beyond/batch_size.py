# SPDX-License-Identifier: BSD-3-Clause
"""batch_size.py - the best batch size B for each SLO, and why: 32, 64, 128, 256.

Larger batches divide the cost per batch by more packets, but packets wait longer, and more of them
compete for the caches.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ...costs.costs import PRIOR, WIDE
from ...plots.base import COLOURS
from ..batchy.table2 import part
from ..common.case import NO_LIMIT, Case
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, percent, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BATCHES = (32, 64, 128, 256)
SLOS_US = (200, 500, 1000, 2000, 5000)
PIPELINES = (
    ("GW(64)", "gateway", {"nexthops": 64}),
    ("VRF(16,16)", "vrf", {"vrfs": 16, "nexthops": 16}),
)
ENDS = ("null", "max")  # without an SLO
# Warm-up periods, periods and their length, measured and quick. With 256 buffers of 256 packets,
# one takes milliseconds to fill; a machine rarely leaves a program undisturbed for long.
_LENGTHS = {
    (False, False): (50, 100, 100_000_000),
    (False, True): (15, 20, 20_000_000),
    (True, False): (200, 2000, 10_000_000),
    (True, True): (30, 50, 10_000_000),
}
_ENOUGH = 0.98  # of the best rate: the smallest B that reaches this is the best


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Every B at every SLO, and the rates of null and max without one."""
    results = yield [
        _case(label, pipeline, params, batch, setup, controller, slo_us)
        for label, pipeline, params in PIPELINES
        for batch in BATCHES
        for controller, slo_us in (
            *((name, None) for name in ENDS),
            *(("optimal", slo) for slo in SLOS_US),
        )
    ]
    rows = [
        _row(label, batch, controller, slo_us, results)
        for label, *_ in PIPELINES
        for batch in BATCHES
        for controller, slo_us in (
            *((name, None) for name in ENDS),
            *(("optimal", slo) for slo in SLOS_US),
        )
    ]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _key(label: str, batch: int, controller: str, slo_us: int | None) -> str:
    return f"{label}/{batch}/{controller}/{slo_us}"


def _case(
    label: str,
    pipeline: str,
    params: dict[str, Any],
    batch: int,
    setup: Setup,
    controller: str,
    slo_us: int | None,
) -> Case:
    warmup, periods, period_ns = _LENGTHS[setup.is_measured, setup.is_quick]
    promise = f"flow_*.slo={'none' if slo_us is None else f'{slo_us}us'}"
    return Case(
        _key(label, batch, controller, slo_us),
        pipeline,
        controller,
        {**params, "batch": batch, "saturate": True, "age_limit": NO_LIMIT},
        sets=("idle=hold", promise),
        # The built-in costs of small batches do not include the cache misses of large ones.
        costs=WIDE if setup.costs == PRIOR and not setup.is_measured else setup.costs,
        period_ns=period_ns,
        warmup_periods=warmup,
        periods=periods,
    )


def _row(label: str, batch: int, controller: str, slo_us: int | None, results: Results) -> Row:
    run = results[_key(label, batch, controller, slo_us)]
    return {
        "pipeline": label,
        "batch_pkts": batch,
        "controller": controller,
        "slo_ns": None if slo_us is None else slo_us * 1000,
        "rate_pps": run["rate_pps"],
        "batch_mean_pkts": run["batch_mean_pkts"],
        "delay_mean_of_periods_ns": run["delay_mean_of_periods_ns"],
        "violated_ratio": run["violated_ratio"],
    }


def best(rows: list[Row], label: str, slo_ns: int) -> tuple[int, float]:
    """The smallest B that reaches about the highest rate, and that rate relative to B = 32."""
    rates = {
        row["batch_pkts"]: row["rate_pps"]
        for row in rows
        if (row["pipeline"], row["slo_ns"]) == (label, slo_ns)
    }
    most = max(rates.values())
    chosen = min(batch for batch, rate in rates.items() if rate >= _ENOUGH * most)
    return chosen, rates[chosen] / rates[BATCHES[0]]


def claims(rows: list[Row]) -> list[Verdict]:
    """Our own claims: the papers use B = 32 throughout."""
    promised = [row for row in rows if row["slo_ns"] is not None]

    def where(row: Row) -> str:
        return f"{row['pipeline']}, B = {row['batch_pkts']}, {short_duration(row['slo_ns'])}"

    null = {
        (r["pipeline"], r["batch_pkts"]): r["rate_pps"] for r in rows if r["controller"] == "null"
    }
    small = {
        (r["pipeline"], r["slo_ns"]): r["rate_pps"]
        for r in promised
        if r["batch_pkts"] == BATCHES[0]
    }
    late = {where(r): r["violated_ratio"] for r in promised if r["violated_ratio"] is not None}
    return [
        at_most(
            "ours: optimal keeps the SLO at every B (0.1 % of periods)", late, 0.001, percent
        ),
        at_least(
            "ours: at every B optimal is no slower than null (0.98)",
            {where(r): r["rate_pps"] / null[r["pipeline"], r["batch_pkts"]] for r in promised},
            0.98, times,
        ),
        at_least(
            "ours: no larger B is slower than 32 at any SLO (0.95)",
            {
                where(r): r["rate_pps"] / small[r["pipeline"], r["slo_ns"]]
                for r in promised if r["batch_pkts"] != BATCHES[0]
            },
            0.95, times,
        ),
    ]  # fmt: skip


# --- the figure -----------------------------------------------------------------------------------


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Above: rate by SLO. Below, without an SLO: the effects of B, and their causes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 8.0), layout="constrained")
    figure.suptitle(f"batches of at most B packets, full load ({_origin(setup)})", fontsize=11)
    panels: Any = figure.subplots(2, len(PIPELINES))
    for column, (label, *_) in enumerate(PIPELINES):
        mine = [row for row in rows if row["pipeline"] == label]
        _draw_rates(panels[0][column], label, mine)
        _draw_reasons(panels[1][column], mine)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=9, loc="outside lower center", ncols=len(labels))
    return figure


def _origin(setup: Setup) -> str:
    return f"simulated, costs: {WIDE}" if setup.origin.endswith(f": {PRIOR}") else setup.origin


def _draw_rates(axis: Axes, label: str, rows: list[Row]) -> None:
    for i, batch in enumerate(BATCHES):
        line = [r for r in rows if r["batch_pkts"] == batch and r["slo_ns"] is not None]
        axis.plot(
            [r["slo_ns"] / 1e6 for r in line], [r["rate_pps"] / 1e6 for r in line], "o-",
            color=COLOURS[i], label=f"B = {batch}", markersize=4.5,
        )  # fmt: skip
    axis.set_title(f"{label}\nsmallest B within 2 % of the best: {_bests(rows, label)}", fontsize=9)
    axis.set_xscale("log")
    axis.set_xticks([slo / 1e3 for slo in SLOS_US], [f"{slo / 1e3:g}" for slo in SLOS_US])
    axis.minorticks_off()
    axis.set_xlabel("SLO [ms]")
    axis.set_ylabel("rate of optimal [Mpps]")
    axis.grid(True, color="#dddddd", linewidth=0.6)


def _bests(rows: list[Row], label: str) -> str:
    """The best B by SLO, such as "128 at 0.2-5 ms", with equal neighbours joined."""
    found = [best(rows, label, slo * 1000)[0] for slo in SLOS_US]
    parts = []
    for batch, many in itertools.groupby(zip(found, SLOS_US, strict=True), lambda pair: pair[0]):
        slos = [slo / 1e3 for _, slo in many]
        ends = f"{slos[0]:g}" if len(slos) == 1 else f"{slos[0]:g}-{slos[-1]:g}"
        parts.append(f"{batch} at {ends} ms")
    return ", ".join(parts)


def _draw_reasons(axis: Axes, rows: list[Row]) -> None:
    """Time per packet under null and max, and the delay of max."""
    at = {(r["batch_pkts"], r["controller"]): r for r in rows if r["slo_ns"] is None}
    width = 0.36
    for i, controller in enumerate(ENDS):
        values = [1e9 / at[batch, controller]["rate_pps"] for batch in BATCHES]
        places = [x + (i - 0.5) * width for x in range(len(BATCHES))]
        bars = axis.bar(places, values, width, color=COLOURS[4 + i], label=controller)
        axis.bar_label(bars, [f"{v:.1f}" for v in values], fontsize=8)
    delays = [at[batch, "max"]["delay_mean_of_periods_ns"] / 1e6 for batch in BATCHES]
    axis.set_xticks(
        range(len(BATCHES)),
        [f"B = {b}\nmax: p95 {d:.2f} ms" for b, d in zip(BATCHES, delays, strict=True)],
        fontsize=8,
    )
    axis.set_ylim(0, 1.18 * axis.get_ylim()[1])
    axis.set_ylabel("time of a packet [ns]")
    axis.legend(fontsize=8, loc="upper right", ncols=2)
    axis.grid(True, axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def _slo(value: int | None) -> str:
    return "none" if value is None else short_duration(value)


COLUMNS = (
    ("pipeline", "<pipeline", shown),
    ("batch_pkts", "B", shown),
    ("controller", "<controller", shown),
    ("slo_ns", "SLO", _slo),
    ("rate_pps", "rate", short_rate),
    ("batch_mean_pkts", "batch", lambda value: "-" if value is None else f"{value:.1f}"),
    ("delay_mean_of_periods_ns", "p95", short_duration),
    ("violated_ratio", "violated periods", part),
)

EXPERIMENT = Experiment(
    "batch_size", "which batch size is best at which SLO: 32 to 256", plan, "batch_size",
    ("null", "max", "optimal"),
    "Not in the papers. Simulated, costs have the measured effect of batch size on a packet's time "
    "in its module; what many held packets do to caches is in measured runs only.",
    BOTH,
)  # fmt: skip
