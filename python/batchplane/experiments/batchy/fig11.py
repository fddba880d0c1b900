# SPDX-License-Identifier: BSD-3-Clause
"""fig11.py - two leaves of different rate or cost: explicit scheduling against run to completion.

First at full load like the paper, with equal weights and with NFVnice's. Then both modes under the
same SLO, each with the controller that searches the optimum.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.units import short_duration, short_rate
from ..common.case import Case
from ..common.experiment import BOTH, Experiment, Outcome, Results, Row, Setup, shown
from .fig11_claims import claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLOWS = ("flow_0", "flow_1")
# NF1 gets twice the packets, or takes twice as long for each.
ASYMMETRIES: dict[str, dict[str, int]] = {
    "rate": {"weight_0": 2},
    "cost": {"per_batch_cycles_0": 2000, "per_pkt_cycles_0": 200},
}


@dataclass(frozen=True)
class Mode:
    """How the task executes, and what sets weights and triggers."""

    name: str
    controller: str
    execution: str = "wfq"
    backpressure: str = "off"

    def params(self) -> dict[str, Any]:
        """Parameters of pipelines/tree.yaml."""
        return {"execution": self.execution, "backpressure": self.backpressure}


FULL_LOAD = (
    Mode("RTC", "null", "run_to_completion"),
    Mode("WFQ", "null"),  # equal weights, queues of 64 packets: the paper's stand-in for NFVnice
    Mode("WFQ, backpressure", "null", backpressure="on"),
    Mode("NFVnice", "nfvnice", backpressure="early_drop"),
)
PROMISED = (
    Mode("RTC, optimal", "optimal", "run_to_completion"),
    Mode("WFQ, explicit model", "wfq", backpressure="on"),
)
SLOS = ("30us", "60us", "120us")
LOADS = (0.3, 0.9)  # of the rate that run to completion carries with full batches
PROMISED_LEAVES = 16  # with two, batches are full anyway


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """Full load first; its rate decides the loads under an SLO."""
    full = yield [_case(setup, what, mode, {"saturate": True}) for what, mode in _full_load()]
    most = yield [
        _case(setup, what, Mode("max", "max", "run_to_completion"), _WIDE | {"saturate": True})
        for what in ASYMMETRIES
    ]
    promised = yield [
        _case(setup, what, mode, _promise(most[f"{what}/max/full"], load, slo), slo, load)
        for what, load, slo, mode in _promised()
    ]
    rows = [_row(full, what, mode) for what, mode in _full_load()]
    rows += [_row(promised, what, mode, slo, load) for what, load, slo, mode in _promised()]
    return Outcome(rows, COLUMNS, claims(rows), lambda: draw(rows, setup))


_WIDE = {"leaves": PROMISED_LEAVES}


def _full_load() -> list[tuple[str, Mode]]:
    return [(what, mode) for what in ASYMMETRIES for mode in FULL_LOAD]


def _promised() -> list[tuple[str, float, str, Mode]]:
    return [
        (what, load, slo, mode)
        for what in ASYMMETRIES
        for load in LOADS
        for slo in SLOS
        for mode in PROMISED
    ]


def _promise(most: dict[str, Any], load: float, slo: str) -> dict[str, Any]:
    return {**_WIDE, "rate_pps": round(load * most["rate_pps"]), "slo": slo}


def _key(what: str, mode: Mode, slo: str = "", load: float = 0.0) -> str:
    return f"{what}/{mode.name}/{f'{load}/{slo}' if slo else 'full'}"


def _case(
    setup: Setup, what: str, mode: Mode, params: dict[str, Any], slo: str = "", load: float = 0.0
) -> Case:
    warmup, periods = (20, 20) if setup.is_quick else (60, 60)
    return Case(
        _key(what, mode, slo, load),
        "tree",
        mode.controller,
        {"leaves": 2, "slo": "5ms", "age_limit": "1s", **ASYMMETRIES[what], **mode.params(),
         **params},
        sets=("idle=hold",),
        costs=setup.costs,
        period_ns=10_000_000,
        warmup_periods=warmup,
        periods=periods,
    )  # fmt: skip


def _row(results: Results, what: str, mode: Mode, slo: str = "", load: float = 0.0) -> Row:
    found = results[_key(what, mode, slo, load)]
    rates = [found["flows"][flow]["rate_pps"] for flow in FLOWS]
    offered = 2.0 if what == "rate" else 1.0  # NF1's rate over NF2's
    return {
        "asymmetry": what,
        "mode": mode.name,
        "slo": slo,
        "load": load,
        "rate_pps": found["rate_pps"],
        "nf1_rate_pps": rates[0],
        "nf2_rate_pps": rates[1],
        # 1: the delivered rates of NF1 and NF2 have the ratio of the offered ones.
        "proportion": rates[0] / rates[1] / offered if rates[1] else float("inf"),
        "nf1_delay_ns": found["flows"][FLOWS[0]]["delay_mean_ns"],
        "nf2_delay_ns": found["flows"][FLOWS[1]]["delay_mean_ns"],
        "batch_mean_pkts": found["batch_mean_pkts"],
        "busy_ratio": found["busy_ratio"],
        "violated_ratio": found["violated_ratio"],
    }


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Rates and delays of both flows at full load, and the load under the same SLO."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 7.2), layout="constrained")
    figure.suptitle(
        f"explicit scheduling against run to completion, two leaves ({setup.origin})\n"
        "paper: WFQ is not rate-proportional and its delay is larger",
        fontsize=11,
    )
    axes = figure.subplots(2, 3)
    for (rate, delay, batch), what in zip(axes, ASYMMETRIES, strict=True):
        full = [row for row in rows if row["asymmetry"] == what and not row["slo"]]
        _bars(rate, full, "rate_pps", 1e6, "Mpps")
        _bars(delay, full, "delay_ns", 1e3, "mean delay, us")
        rate.set_title(f"asymmetric {what}: NF1 {'gets' if what == 'rate' else 'costs'} twice")
        _under_promise(batch, [row for row in rows if row["asymmetry"] == what and row["slo"]])
    return figure


def _bars(axis: Any, rows: list[Row], key: str, unit: float, label: str) -> None:
    for shift, nf in ((-0.2, "nf1"), (0.2, "nf2")):
        values = [(row[f"{nf}_{key}"] or 0) / unit for row in rows]
        axis.bar([i + shift for i in range(len(rows))], values, 0.4, label=nf.upper())
    axis.set_xticks(range(len(rows)), [row["mode"].replace(", ", ",\n") for row in rows])
    axis.tick_params(axis="x", labelsize=8)
    axis.set_ylabel(label)
    axis.margins(y=0.2)  # room for the legend
    axis.legend(fontsize=8, loc="upper right", ncols=2)


def _under_promise(axis: Any, rows: list[Row]) -> None:
    for mode in PROMISED:
        for load, style in zip(LOADS, ("--", "-"), strict=True):
            mine = [row for row in rows if row["mode"] == mode.name and row["load"] == load]
            axis.plot(
                range(len(mine)), [row["batch_mean_pkts"] for row in mine], style,
                marker="o" if mode is PROMISED[0] else "x", label=f"{mode.name}, load {load:g}",
            )  # fmt: skip
    axis.set_xticks(range(len(SLOS)), SLOS)
    axis.set_title(f"{PROMISED_LEAVES} leaves under a promise", fontsize=10)
    axis.set_xlabel("SLO")
    axis.set_ylabel("mean batch, packets")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=7)


def _share(value: Any) -> str:
    return "-" if value is None else f"{value:.0%}"


def _two(value: Any) -> str:
    return f"{value:.2f}"


def _one(value: Any) -> str:
    return "-" if value is None else f"{value:.1f}"


def _load(value: Any) -> str:
    return f"{value:g}" if value else "full"


COLUMNS = (
    ("asymmetry", "twice the", shown),
    ("mode", "mode", shown),
    ("load", "load", _load),
    ("slo", "SLO", shown),
    ("nf1_rate_pps", "NF1", short_rate),
    ("nf2_rate_pps", "NF2", short_rate),
    ("proportion", "NF1 / NF2, of offered", _two),
    ("nf1_delay_ns", "delay NF1", short_duration),
    ("nf2_delay_ns", "delay NF2", short_duration),
    ("batch_mean_pkts", "batch", _one),
    ("violated_ratio", "violated", _share),
)

EXPERIMENT = Experiment(
    "fig11", "explicit scheduling against run to completion (figure 11)", plan, "fig11",
    ("null", "nfvnice", "optimal", "wfq"),
    "Units take part by cycles; queues of 64 packets; 60 periods of 10 ms after 60 of warm-up.",
    BOTH,
)  # fmt: skip
