# SPDX-License-Identifier: BSD-3-Clause
"""fairness.py - shares of the core and delays between flows: the scheduling models of appendix A.

First two functions of different rate or cost at full load. Then both behind a shared first
function: a light flow next to a heavy one at part load, and late drops at full load. Then a plain
chain.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ...lang.pipeline import Module, Options, Pipeline
from ..common.case import Case
from ..common.experiment import Experiment, Outcome, Results, Row, Setup, shown
from .fairness_claims import claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PER_BATCH_NS, PER_PKT_NS = 400, 40  # the scripts' 1000 + 100 n cycles
FACTORS = (1, 2, 4, 8, 16)  # one function's rate or cost over the other's
LOADS = (0.5, 0.9)  # of the rate that run to completion carries
CHAIN = 4


@dataclass(frozen=True)
class Mode:
    """How the task executes, and what sets the weights."""

    name: str
    execution: str = "wfq"
    backpressure: str = "off"
    controller: str = "null"
    is_weighted: bool = False  # weights set by hand, proportional to rate x cost

    def engine(self) -> dict[str, str]:
        """The `execution` section of a pipeline file."""
        return {"mode": self.execution, "backpressure": self.backpressure}


RTC = Mode("RTC", "run_to_completion")
WFQ = Mode("WFQ")
MODES = (
    RTC,
    WFQ,
    Mode("WFQ, weights by hand", controller="none", is_weighted=True),  # null: equal weights
    Mode("WFQ, backpressure", backpressure="on"),
    Mode("NFVnice", backpressure="early_drop", controller="nfvnice"),
)


def pipeline(mode: Mode, factor: int, *, is_shared: bool, weights: tuple[int, int]) -> str:
    """A light and a heavy function behind a split, optionally behind a function shared by both."""
    options = Options(idle="hold", execution=dict(mode.engine()))
    built = Pipeline("fairness", options)
    port = built.port("link", "ring", size_pkts=64)
    built.generator("load", port, rate_pps=1_000_000, arrivals="poisson")
    path = [built.module("in", "port_in", port=port)]
    # By hand: proportional to rate x cost; the shared function gets the packets of both.
    heavy = factor * weights[0] if mode.is_weighted else 1
    if is_shared:
        path.append(_function(built, "shared", 1, 2 if mode.is_weighted else 1))
    path.append(
        built.module("split", "split", mode="weighted", gates=2, weights=[weights[0], weights[1]])
    )
    for before, after in itertools.pairwise(path):
        before >> after
    # The heavy one first: a run executes it before the light flow's packets.
    for gate, (name, own, weight) in enumerate((("heavy", factor, heavy), ("light", 1, 1))):
        work = _function(built, name, own, weight)
        end = built.module(f"out_{name}", "sink")
        path[-1][gate] >> work >> end
        built.flow(name, [*path, work, end], delay_slo="100ms")
    return json.dumps({**built.to_json(), "source_map": {}})


def chain(mode: Mode) -> str:
    """Equal functions in a row, which leave no room for unfairness."""
    built = Pipeline("chain", Options(idle="hold", execution=dict(mode.engine())))
    port = built.port("link", "ring", size_pkts=64)
    built.generator("load", port, rate_pps=1_000_000, saturate=True)
    path = [built.module("in", "port_in", port=port)]
    path += [_function(built, f"nf_{i}", 1) for i in range(CHAIN)]
    path.append(built.module("out", "sink"))
    for before, after in itertools.pairwise(path):
        before >> after
    built.flow("flow", path, delay_slo="100ms")
    return json.dumps({**built.to_json(), "source_map": {}})


def _function(built: Pipeline, name: str, factor: int, weight: int = 1) -> Module:
    return built.module(
        name, "cost", weight=weight, cost_per_batch_ns=PER_BATCH_NS * factor,
        cost_per_pkt_ns=PER_PKT_NS * factor,
    )  # fmt: skip


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Full load first; the rate that run to completion carries there decides the part loads."""
    shares = [(what, f, mode) for what in ("rate", "cost") for f in FACTORS for mode in MODES]
    first = yield [
        *(_shares_case(setup, what, f, mode) for what, f, mode in shares),
        *(_behind_case(setup, f, mode, 0.0, 0.0) for f in FACTORS for mode in MODES),
        *(_case(setup, f"chain/{mode.name}", chain(mode), mode) for mode in MODES),
    ]
    full_pps = {f: first[f"behind/{f}/{RTC.name}/full"]["rate_pps"] for f in FACTORS}
    cells = [(f, load, mode) for f in FACTORS for load in LOADS for mode in MODES]
    part = yield [_behind_case(setup, f, mode, load, full_pps[f]) for f, load, mode in cells]
    rows = [_shares_row(first, what, f, mode) for what, f, mode in shares]
    rows += [_behind_row(first, f, mode, 0.0) for f in FACTORS for mode in MODES]
    rows += [_behind_row(part, f, mode, load) for f, load, mode in cells]
    rows += [_chain_row(first, mode) for mode in MODES]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


def _case(setup: Setup, key: str, text: str, mode: Mode, **more: Any) -> Case:
    warmup, periods = (20, 20) if setup.is_quick else (60, 60)
    return Case(
        key, text, mode.controller, costs=setup.costs, warmup_periods=warmup, periods=periods,
        by_module=True, **more,
    )  # fmt: skip


def _shares_case(setup: Setup, what: str, factor: int, mode: Mode) -> Case:
    rate, cost = (factor, 1) if what == "rate" else (1, factor)
    text = pipeline(mode, cost, is_shared=False, weights=(rate, 1))
    key = f"shares/{what}/{factor}/{mode.name}"
    return _case(setup, key, text, mode, sets=("load.saturate=true",))


def _behind_case(setup: Setup, factor: int, mode: Mode, load: float, full_pps: float) -> Case:
    text = pipeline(mode, factor, is_shared=True, weights=(1, 1))
    rate = f"load.rate={round(load * full_pps)}" if load else "load.saturate=true"
    key = f"behind/{factor}/{mode.name}/{load or 'full'}"
    return _case(setup, key, text, mode, sets=(rate,))


# --- rows -----------------------------------------------------------------------------------------


def _time_ns(found: dict[str, Any], module: str, factor: int) -> float:
    own = found["by_module"][module]
    return float(factor * (PER_BATCH_NS * own["batches"] + PER_PKT_NS * own["pkts"]))


def _row(found: dict[str, Any], part: str, mode: Mode, **more: Any) -> Row:
    flows = {name: flow for name, flow in found["flows"].items() if name in ("heavy", "light")}
    # Work on packets that are dropped behind the shared function is wasted.
    late = sum(found["by_module"][name]["dropped_pkts"] for name in flows)
    served = sum(found["by_module"][name]["pkts"] for name in flows)
    return {
        "part": part, "factor": 1, "load": 0.0, "mode": mode.name,
        "rate_pps": found["rate_pps"],
        "heavy_rate_pps": None, "light_rate_pps": None, "proportion": None, "time_share": None,
        "heavy_delay_ns": None, "light_delay_ns": None,
        "late_drops": late / max(1, late + served),
        **{f"{name}_rate_pps": flow["rate_pps"] for name, flow in flows.items()},
        **{f"{name}_delay_ns": flow["delay_mean_ns"] for name, flow in flows.items()},
        **more,
    }  # fmt: skip


def _shares_row(results: Results, what: str, factor: int, mode: Mode) -> Row:
    found = results[f"shares/{what}/{factor}/{mode.name}"]
    rate, cost = (factor, 1) if what == "rate" else (1, factor)
    row = _row(found, what, mode, factor=factor)
    heavy_ns, light_ns = _time_ns(found, "heavy", cost), _time_ns(found, "light", 1)
    # 1: the ratio of delivered rates equals that of the offered ones.
    row["proportion"] = row["heavy_rate_pps"] / row["light_rate_pps"] / rate
    row["time_share"] = heavy_ns / (heavy_ns + light_ns)
    return row


def _behind_row(results: Results, factor: int, mode: Mode, load: float) -> Row:
    found = results[f"behind/{factor}/{mode.name}/{load or 'full'}"]
    row = _row(found, "behind", mode, factor=factor, load=load)
    row["proportion"] = row["heavy_rate_pps"] / row["light_rate_pps"]
    return row


def _chain_row(results: Results, mode: Mode) -> Row:
    return _row(results[f"chain/{mode.name}"], "chain", mode)


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Shares, delays and drops by factor."""
    from .fairness_figure import draw_panels

    return draw_panels(rows, setup)


def _two(value: Any) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(value: Any) -> str:
    return "-" if value is None else f"{value:.0%}"


def _rate(value: Any) -> str:
    return "-" if value is None else short_rate(value)


def _delay(value: Any) -> str:
    return "-" if value is None else short_duration(value)


COLUMNS = (
    ("part", "<part", shown),
    ("factor", "times", shown),
    ("load", "load", lambda value: f"{value:g}" if value else "full"),
    ("mode", "<mode", shown),
    ("heavy_rate_pps", "heavy", _rate),
    ("light_rate_pps", "light", _rate),
    ("proportion", "heavy / light, of offered", _two),
    ("time_share", "heavy's time", _share),
    ("heavy_delay_ns", "delay heavy", _delay),
    ("light_delay_ns", "delay light", _delay),
    ("late_drops", "dropped late", lambda value: f"{value:.1%}"),
)

EXPERIMENT = Experiment(
    "fairness", "shares, waiting behind a heavy flow, late drops (appendix A)", plan, "fairness",
    ("null", "nfvnice"),
    "The paper argues this in words; numbers of its own beyond figure 11's are not known.",
)  # fmt: skip
