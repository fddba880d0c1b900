# SPDX-License-Identifier: BSD-3-Clause
"""dispatch.py - `pspat_io`: from the scheduler to a sink, directly or through dispatchers."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...egress.virtual import FlatOut, flat_out_mpps
from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import MEASURED, Experiment, Outcome, Results, Row, Setup, shown
from ..common.verdict import Verdict, at_least
from . import device, kernel
from .rates import RATE_COLUMNS, finish_rates, rate_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCHES = (1, 8, 32, 128, 256)
SINKS = {"counts": False, "copies into a ring": True}


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """QFQ with one client; all arrangements take turns."""
    yield []
    trials, run_ms = (3, 20) if setup.is_quick else (30, 50)
    found: dict[tuple[str, int, int], list[float]] = {}
    for _ in range(trials):
        for sink, copies in SINKS.items():
            for dispatchers in range(3):
                # Without dispatchers the batch size does not matter.
                for batch in BATCHES if dispatchers else BATCHES[:1]:
                    what = FlatOut(dispatchers=dispatchers, dispatch_pkts=batch, copies=copies)
                    found.setdefault((sink, dispatchers, batch), []).append(
                        flat_out_mpps(what, run_ms)
                    )
    rows = rows_of(
        {(sink, n, batch if n else 0): rates for (sink, n, batch), rates in found.items()}
    )
    verdicts = claims(rows)
    if kernel.missing() is None:
        on_device = rows_of(device.measure(1 if setup.is_quick else 3, 10 * run_ms, BATCHES))
        rows += on_device
        verdicts += device_claims(on_device)
    return Outcome(rows, COLUMNS, verdicts, lambda: draw(rows, setup))


def rows_of(found: dict[tuple[str, int, int], list[float]]) -> list[Row]:
    """Rates by sink, dispatchers, and packets handed over, or sent, at a time."""
    return [
        {"sink": sink, "dispatchers": dispatchers, "batch_pkts": batch, **rate_cells(rates)}
        for (sink, dispatchers, batch), rates in found.items()
    ]


def device_claims(rows: list[Row]) -> list[Verdict]:
    """What batches are worth where sending takes system calls, and what a dispatcher changes."""
    of = {(row["dispatchers"], row["batch_pkts"]): float(row["mpps"]) for row in rows}
    times = lambda value: f"{value:.2f}x"  # noqa: E731
    most = BATCHES[-1]
    large = {f"{n} dispatchers": of[n, most] / of[n, 1] for n in device.DISPATCHERS}
    return [
        at_least(f"over veth sending {most} at a time is worth it (of one)", large, 1.5, times),
        at_least(f"over veth as many with a dispatcher as without ({most} at a time)",
                 {"one dispatcher": of[1, most] / of[0, most]}, 0.95, times),
    ]  # fmt: skip


def claims(rows: list[Row]) -> list[Verdict]:
    """The slides' 15 to 20 Mpps over netmap, and dispatchers, their future work."""
    mpps = lambda value: f"{value:.0f} Mpps"  # noqa: E731
    times = lambda value: f"{value:.2f}x"  # noqa: E731
    own = {row["sink"]: float(row["mpps"]) for row in rows if row["dispatchers"] == 0}

    def by(dispatchers: int, batch: int) -> dict[str, float]:
        return {
            row["sink"]: float(row["mpps"])
            for row in rows
            if row["dispatchers"] == dispatchers and row["batch_pkts"] == batch
        }

    gain = {
        f"{n} dispatchers, {sink}": rate / own[sink]
        for n in (1, 2)
        for sink, rate in by(n, 256).items()
    }
    large = {
        f"{n} dispatchers, {sink}": rate / by(n, 1)[sink]
        for n in (1, 2)
        for sink, rate in by(n, 256).items()
    }
    return [
        at_least("15 Mpps into the ring of a device", {"by the arbiter": own["copies into a ring"]},
                 15, mpps),
        at_least("as many through a dispatcher (256 at a time)", by(1, 256), 15, mpps),
        at_least("dispatchers take work off the arbiter (256 at a time)", gain, 1, times),
        at_least("handing over 256 at a time is worth it (against one)", large, 2, times),
    ]  # fmt: skip


def draw(rows: list[Row], setup: Setup) -> Figure:
    """Rate by batch size of the handover."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.add_subplot()
    figure.suptitle(f"QFQ, 32 flows, one client, into a ring ({setup.origin})", fontsize=10)
    mine = [row for row in rows if row["sink"] == "copies into a ring"]
    for i, dispatchers in enumerate((1, 2)):
        some = [row for row in mine if row["dispatchers"] == dispatchers]
        axis.plot([r["batch_pkts"] for r in some], [r["mpps"] for r in some], "o-", markersize=4,
                  color=COLOURS[i], label=f"{dispatchers} dispatchers")  # fmt: skip
    (own,) = [row["mpps"] for row in mine if row["dispatchers"] == 0]
    axis.axhline(own, color="#444444", linewidth=0.8, label="the arbiter itself")
    axis.set_xscale("log", base=2)
    finish_rates(axis, "packets handed to a dispatcher at a time")
    return figure


COLUMNS = (
    ("sink", "the sink", shown),
    ("dispatchers", "dispatchers", shown),
    ("batch_pkts", "at a time", shown),
    *RATE_COLUMNS,
)

EXPERIMENT = Experiment(
    "pspat_io", "PSPAT: dispatchers", plan, "pspat_io", (),
    "the scheduler has a core; client and dispatchers share the others. Over veth the client is on "
    "the scheduler's core.", runs=(MEASURED,),
)  # fmt: skip
