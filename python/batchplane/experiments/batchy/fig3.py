# SPDX-License-Identifier: BSD-3-Clause
"""fig3.py - service time by batch size, its linear fit and its batchiness (figure 3)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...plots.base import COLOURS
from ..common.case import Case
from ..common.experiment import MEASURED, SIMULATED, Experiment, Outcome, Results, Row, Setup, shown
from ..common.module_profile import KINDS, batchiness, modules_of
from ..common.verdict import Verdict, at_least, at_most, in_range, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The values of the papers' scripts in ns: per batch and per packet.
PUBLISHED = {
    "exact_match": (117.8, 19.2),
    "ipv4_lookup": (214.7, 40.2),
    "acl": (195.8, 33.1),
    "static_nat": (43.5, 21.0),
}
_MIN_R_SQUARED = 0.96


def plan(setup: Setup) -> Generator[list[Case], Results, Outcome]:
    """No pipeline runs: modules are measured by themselves."""
    yield []
    modules = modules_of(setup)
    rows = [_row(module) for module in modules]
    tables = {module["kind"]: [float(ns) for ns in module["table_ns"]] for module in modules}
    # A given line fits itself perfectly.
    told = [v for v in claims(rows) if setup.is_measured or not _is_of_fits(v)]
    return Outcome(rows, COLUMNS, told, lambda: draw(rows, tables, setup), tables)


def _row(module: dict[str, Any]) -> Row:
    given = PUBLISHED.get(module["kind"])
    return {
        "module": module["kind"],
        "papers_name": KINDS[module["kind"]] or "-",
        "cost_per_batch_ns": float(module["cost_per_batch_ns"]),
        "cost_per_pkt_ns": float(module["cost_per_pkt_ns"]),
        "r_squared": float(module["r_squared"]),
        "batchiness": batchiness(module),
        "papers_batch_ns": given[0] if given else None,
        "papers_pkt_ns": given[1] if given else None,
        # Files of earlier daemons lack it.
        "small_error": float(module.get("small_error_ratio", 0.0)),
        "reason": str(module.get("reason") or ""),
    }


def _is_of_fits(verdict: Verdict) -> bool:
    return "R^2" in verdict.claim or "the fit" in verdict.claim


def claims(rows: list[Row]) -> list[Verdict]:
    """The paper's claims about figure 3; `cost` has a given, flat line."""
    papers = [row for row in rows if row["papers_name"] not in ("-", "Bypass")]
    fits = {row["module"]: row["r_squared"] for row in papers}
    given = [row for row in rows if row["papers_batch_ns"] is not None]
    faster = {
        row["module"]: (row["papers_batch_ns"] + 32 * row["papers_pkt_ns"])
        / (row["cost_per_batch_ns"] + 32 * row["cost_per_pkt_ns"])
        for row in given
    }

    def digits(value: float) -> str:
        return f"{value:.3f}"

    return [
        at_least("service time is linear in the batch size: R^2", fits, _MIN_R_SQUARED, digits),
        in_range(
            "batchiness is 0.2 to 0.3", {row["module"]: row["batchiness"] for row in papers},
            0.2, 0.3, digits, is_more_better=False,
        ),
        at_most(
            "ours: the fit is at most 10 % off at 1 to 4 packets, or a reason is stated",
            {row["module"]: 0.0 if row["reason"] else row["small_error"] for row in rows},
            0.1, percent,
        ),
        at_least(
            "ours: a batch of 32 takes no longer than the papers' (other machines)",
            faster, 1.0, lambda value: f"{value:.1f}x faster",
        ),
    ]  # fmt: skip


def draw(rows: list[Row], tables: dict[str, list[float]], setup: Setup) -> Figure:
    """Points and lines: of all modules, and of those in the papers with the papers' lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, row in enumerate(rows):
        colour = COLOURS[i % len(COLOURS)]
        label = f"{row['module']} ({row['batchiness']:.2f})"
        style = "-" if i < len(COLOURS) else ":"
        _points(left, tables[row["module"]], row, colour, style, label)
        if row["papers_batch_ns"] is None:
            continue
        _points(right, tables[row["module"]], row, colour, "-", row["module"])
        sizes = range(1, 33)
        theirs = [row["papers_batch_ns"] + row["papers_pkt_ns"] * n for n in sizes]
        right.plot(sizes, theirs, "--", color=colour, label=f"{row['papers_name']}, published")
    left.set_yscale("log")
    left.set_title("modules (batchiness)", fontsize=10)
    right.set_title("beside the costs in the papers' scripts (dashed)", fontsize=10)
    for axis in (left, right):
        axis.set_xlabel("batch size [packets]")
        axis.set_ylabel("service time of a batch [ns]")
        axis.grid(True, color="#dddddd", linewidth=0.6)
    left.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    right.legend(fontsize=7, loc="upper left")
    figure.suptitle(
        f"service time against batch size ({setup.origin}); paper: linear, batchiness 0.2 to 0.3",
        fontsize=10,
    )
    return figure


def _points(axis: Axes, table: list[float], row: Row, colour: str, style: str, label: str) -> None:
    sizes = range(1, min(len(table), 32) + 1)
    axis.plot(sizes, table[: len(sizes)], ".", color=colour, markersize=4)
    law = [row["cost_per_batch_ns"] + row["cost_per_pkt_ns"] * n for n in sizes]
    axis.plot(sizes, law, style, color=colour, linewidth=0.9, label=label)


def _ns(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


COLUMNS = (
    ("module", "<module", shown),
    ("papers_name", "<papers' name", shown),
    ("cost_per_batch_ns", "ns per batch", _ns),
    ("cost_per_pkt_ns", "ns per packet", _ns),
    ("papers_batch_ns", "papers: per batch", _ns),
    ("papers_pkt_ns", "per packet", _ns),
    ("r_squared", "R^2", lambda value: f"{value:.4f}"),
    ("batchiness", "batchiness", lambda value: f"{value:.2f}"),
    ("reason", "<", shown),
)

EXPERIMENT = Experiment(
    "fig3", "service time of modules against batch size (figure 3)", plan, "fig3", (),
    "Modules by themselves; the published costs are those in the scripts. Simulated: the lines "
    "that the costs are, so that R^2 says nothing.",
    (MEASURED, SIMULATED),
)  # fmt: skip
