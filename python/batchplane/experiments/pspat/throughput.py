# SPDX-License-Identifier: BSD-3-Clause
"""throughput.py - `pspat_throughput`: clients at full rate through a scheduler without a link."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...egress.virtual import FlatOut, flat_out_mpps
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import MEASURED, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least, at_most, in_range
from . import kernel
from .rates import RATE_COLUMNS, finish_rates, rate_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLIENTS = (1, 2, 4, 8)
WAYS = {
    "arbiter, DRR": ("arbiter", "drr"),
    "arbiter, QFQ": ("arbiter", "qfq"),
    "one lock, DRR": ("lock", "drr"),
    "one lock, QFQ": ("lock", "qfq"),
}
_NONE = "no scheduler"
KERNEL_SENDERS = (1, 2, 3)
_KERNEL = {"kernel, no qdisc": "none", "kernel, pfifo": "pfifo", "kernel, HTB": "htb"}
_HTB_GBPS = [8, 1, 1]


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """All arrangements take turns in every trial, so that a slow moment of the machine affects
    all."""
    yield []
    trials, run_ms = (3, 20) if setup.is_quick else (30, 50)
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(trials):
        for clients in CLIENTS:
            for name, (way, discipline) in {**WAYS, _NONE: ("alone", "fifo")}.items():
                rate = flat_out_mpps(FlatOut(way, discipline, clients=clients), run_ms)
                found.setdefault((name, clients), []).append(rate)
    rows: list[Row] = [
        {"way": name, "clients": clients, **rate_cells(rates)}
        for (name, clients), rates in found.items()
    ]
    verdicts = claims(rows)
    if kernel.missing() is None:
        of_kernel, htb_shares = measure_kernel(trials, 10 * run_ms)
        rows += of_kernel
        verdicts += kernel_claims(of_kernel, htb_shares)
    return Outcome(rows, COLUMNS, verdicts, lambda: draw(rows, setup))


def measure_kernel(trials: int, run_ms: int) -> tuple[list[Row], list[float]]:
    """Datagrams sent, and the shares of three senders in classes of 8 : 1 : 1."""
    found: dict[tuple[str, int], list[float]] = {}
    of_class = [0] * len(_HTB_GBPS)
    with kernel.veth_pair() as space:
        for _ in range(max(1, trials // 6)):
            for name, scheduler in _KERNEL.items():
                kernel.use(space, scheduler, _HTB_GBPS)
                for senders in KERNEL_SENDERS:
                    before = kernel.sent_pkts(space)
                    taken = kernel.flood(space, senders, run_ms)
                    rate = (kernel.sent_pkts(space) - before) / run_ms / 1e3
                    found.setdefault((name, senders), []).append(rate)
                    if scheduler == "htb" and senders == len(of_class):
                        of_class = [a + b for a, b in zip(of_class, taken, strict=True)]
    rows: list[Row] = [
        {"way": name, "clients": senders, **rate_cells(rates)}
        for (name, senders), rates in found.items()
    ]
    return rows, [pkts / sum(of_class) for pkts in of_class]


def kernel_claims(rows: list[Row], htb_shares: list[float]) -> list[Verdict]:
    """The slides' claims about TC, the kernel's scheduler."""
    of = {(row["way"], row["clients"]): float(row["mpps"]) for row in rows}
    mpps = lambda value: f"{value:.2f} Mpps"  # noqa: E731
    htb = {f"{n} senders": of["kernel, HTB", n] for n in KERNEL_SENDERS}
    fall = {
        f"{n} senders": of["kernel, HTB", n] / of["kernel, no qdisc", n] for n in KERNEL_SENDERS
    }
    return [
        at_most("the kernel's scheduler carries 2 Mpps at most (HTB)", htb, 2, mpps),
        at_most("it costs a third or more with several senders (HTB, of no qdisc)",
                {name: part for name, part in fall.items() if name != "1 senders"}, 0.67,
                lambda v: f"{v:.2f}x"),
        at_most("weights of 8 : 1 : 1 have no effect in it (share of the first)",
                {"HTB": htb_shares[0]}, 0.6, lambda v: f"{v:.2f}"),
    ]  # fmt: skip


def claims(rows: list[Row]) -> list[Verdict]:
    """The slides' claims that this machine can check."""
    of = {(row["way"], row["clients"]): float(row["mpps"]) for row in rows}
    mpps = lambda value: f"{value:.0f} Mpps"  # noqa: E731
    times = lambda value: f"{value:.2f}x"  # noqa: E731

    def over(way: str, base: str, clients: tuple[int, ...]) -> dict[str, float]:
        return {f"{n} clients": of[way, n] / of[base, n] for n in clients}

    def kept(way: str) -> dict[str, float]:
        return {f"{n} clients": of[way, n] / of[way, 1] for n in CLIENTS[1:]}

    return [
        at_least("28 million decisions a second (QFQ)",
                 {f"{n} clients": of["arbiter, QFQ", n] for n in CLIENTS}, 28, mpps),
        in_range("DRR is marginally faster than QFQ", over("arbiter, DRR", "arbiter, QFQ", CLIENTS),
                 1.0, 1.3, times),
        at_least("the arbiter does not slow down with clients (QFQ, of one client)",
                 kept("arbiter, QFQ"), 0.9, times),
        at_most("a lock does (QFQ, of one client)", kept("one lock, QFQ"), 0.8, times),
        at_least("with several clients the arbiter does twice as much as a lock (DRR)",
                 over("arbiter, DRR", "one lock, DRR", CLIENTS[1:]), 2, times),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Rate by number of clients."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(f"32 flows, 60 bytes, 32 handed over at a time\n({setup.origin})", fontsize=10)
    for i, name in enumerate(WAYS):
        mine = [row for row in rows if row["way"] == name]
        axis.plot([r["clients"] for r in mine], [r["mpps"] for r in mine],
                  "o-" if i < 2 else "s--", markersize=4, color=COLOURS[i], label=name)  # fmt: skip
    axis.axhline(28, color="#444444", linewidth=0.8, label="PSPAT, 28 Mpps")
    finish_rates(axis, "clients")
    return figure


COLUMNS = (
    ("way", "between clients and sink", shown),
    ("clients", "clients", shown),
    *RATE_COLUMNS,
)

EXPERIMENT = Experiment(
    "pspat_throughput", "PSPAT: clients flat out", plan, "pspat_throughput", (),
    "an arbiter has a core, its clients share the others; a lock's clients have all; the kernel "
    "sends over veth.",
    runs=(MEASURED,),
)  # fmt: skip
