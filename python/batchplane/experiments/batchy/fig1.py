# SPDX-License-Identifier: BSD-3-Clause
"""fig1.py - the maximum rate of a module by the size of its input batches (figure 1).

Measured: the module by itself. Simulated: with the given costs, between an input that is never
empty and a sink, so that it includes the engine's own costs, as the paper includes BESS's.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...base.units import short_rate
from ...lang.pipeline import Options, Pipeline
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import MEASURED, SIMULATED, Experiment, Outcome, Results, Row, Setup, shown
from ..common.module_profile import KINDS, modules_of, time_ns
from ..common.verdict import Verdict, at_least, in_range, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (1, 2, 4, 8, 16, 32)


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Measured: no pipeline runs. Simulated: one run for each module and size."""
    modules = modules_of(setup)
    if setup.is_measured:
        yield []
        rows = [_row(m, {n: n / max(time_ns(m, n), 1e-3) * 1e9 for n in SIZES}) for m in modules]
    else:
        found = yield [_case(module, n, setup) for module in modules for n in SIZES]
        rows = [
            _row(module, {n: float(found[f"{module['kind']}/{n}"]["rate_pps"]) for n in SIZES})
            for module in modules
        ]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _row(module: dict[str, Any], rates: dict[int, float]) -> Row:
    return {
        "module": module["kind"],
        "papers_name": KINDS[module["kind"]] or "-",
        **{f"rate_{n}_pps": rates[n] for n in SIZES},
        "gain": rates[SIZES[-1]] / rates[1],
    }


def pipeline(batch_pkts: int) -> str:
    """A module between input and sink, at the rate that the worker can take."""
    built = Pipeline("one", Options(batch_pkts=batch_pkts, idle="hold"))
    port = built.port("link", "ring", size_pkts=64)
    built.generator("load", port, rate_pps=1_000_000, saturate=True)
    path = [built.module("in", "port_in", port=port)]
    path.append(built.module("nf", "cost", cost_per_batch_ns=1, cost_per_pkt_ns=1))
    path.append(built.module("out", "sink"))
    path[0] >> path[1] >> path[2]
    built.flow("flow", path)
    return json.dumps({**built.to_json(), "source_map": {}})


def _case(module: dict[str, Any], batch_pkts: int, setup: Setup) -> Case:
    return Case(
        f"{module['kind']}/{batch_pkts}",
        pipeline(batch_pkts),
        "null",
        costs=setup.costs,
        own_costs={
            "nf": {key: module[key] for key in ("cost_per_batch_ns", "cost_per_pkt_ns")}
        },
        warmup_periods=1,
        periods=5 if setup.is_quick else 50,
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Verdict]:
    """The paper's claims about figure 1; `cost` gains more by construction and is left out."""
    gains = {row["module"]: row["gain"] for row in rows}
    papers = {
        row["module"]: row["gain"] for row in rows if row["papers_name"] not in ("-", "Bypass")
    }
    return [
        in_range(
            "batches of 32 bring 2 to 5 times the rate of single packets", papers, 2, 5, times
        ),
        at_least("ours: no module is slower for being batched", gains, 1.0, times),
    ]


def draw(rows: list[Row], setup: Setup) -> Figure:
    """The rate of each module by batch size, with the paper's band above single packets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.5), layout="constrained")
    axis = figure.subplots()
    for i, row in enumerate(rows):
        rates = [row[f"rate_{n}_pps"] / row["rate_1_pps"] for n in SIZES]
        name = row["module"] + (f" ({row['papers_name']})" if row["papers_name"] != "-" else "")
        style = "-o" if i < len(COLOURS) else "--s"
        axis.plot(
            SIZES, rates, style, color=COLOURS[i % len(COLOURS)], label=name, markersize=3.5,
            linewidth=1.1,
        )  # fmt: skip
    axis.axhspan(2, 5, color="black", alpha=0.1, lw=0)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.set_xticks(SIZES, [str(n) for n in SIZES])
    axis.set_xlabel("batch size [packets]")
    axis.set_ylabel("rate / rate of single packets")
    axis.set_title("paper: 2 to 5 times at a batch of 32 (band)", fontsize=9, loc="right")
    axis.grid(True, color="#dddddd", linewidth=0.6)
    figure.suptitle(f"rate against batch size ({setup.origin})", fontsize=10)
    figure.legend(fontsize=8, loc="outside right center")
    return figure


COLUMNS = (
    ("module", "<module", shown),
    ("papers_name", "<papers' name", shown),
    *((f"rate_{n}_pps", f"batch {n}", short_rate) for n in SIZES),
    ("gain", "32 / 1", times),
)

EXPERIMENT = Experiment(
    "fig1", "rate of modules against batch size (figure 1)", plan, "fig1", (),
    "Measured: modules by themselves; simulated: with the engine's loop around them.",
    (MEASURED, SIMULATED),
)  # fmt: skip
