# SPDX-License-Identifier: BSD-3-Clause
"""report.py - measured costs as a table and as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ..base.percentile import percentile_or_0
from ..base.plain_table import plain_table
from ..base.problems import BadInput, Problem
from ..costs.doubt import judge, left_out_errors
from ..costs.file import LOOP_COSTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GOOD_ERROR = 0.1  # relative error of the line
_MAX_CURVES = 12  # more are indistinguishable
_MAX_SPREAD = 8
_SUFFIXES = (".png", ".pdf", ".svg")


def render_profile(document: Mapping[str, Any], out: Console) -> None:
    """One line per module, then the engine's own costs."""
    out.print(
        Text(
            f"{document['cpu']}, core {document.get('core', '?')}, {document['date']}, "
            f"batches of 1 to {document['batch_pkts']} packets",
            "dim",
        )
    )
    table = plain_table(
        "<module",
        "<kind",
        "ns/batch",
        "+-",
        "ns/pkt",
        "+-",
        "R2",
        "line off at 1-4",
        "table off",
        "batchiness",
        "<",
    )
    for module in document["modules"]:
        more = len(module.get("members", ())) - 1
        name = str(module["name"]) + (f" and {more} more" if more > 0 else "")
        table.add_row(
            Text(name),
            Text(str(module["kind"])),
            f"{module['cost_per_batch_ns']:.1f}",
            f"{_half_width(module['cost_per_batch_95_ns']):.1f}",
            f"{module['cost_per_pkt_ns']:.2f}",
            f"{_half_width(module['cost_per_pkt_95_ns']):.2f}",
            f"{float(module['r_squared']):.4f}",
            _error(module.get("small_error_ratio")),
            _error(percentile_or_0(sorted(left_out_errors(module).values()), 0.95)),
            f"{module['batchiness']:.2f}",
            Text("; ".join(str(module[key]) for key in ("reason", "note") if module.get(key))),
        )
    out.print(table)
    if document.get("loop"):
        out.print(Text("\nengine costs", "bold"))
        loop = plain_table("<", "ns")
        for key, words in LOOP_COSTS.items():
            loop.add_row(words, f"{document['loop'][key]:.1f}")
        out.print(loop)
    if document.get("check"):
        _render_check(document["check"], out)
    judgement = judge(document)
    out.print(Text("\n" + judgement.line(), "" if judgement.is_sure else "yellow"), soft_wrap=True)
    if document.get("doubts"):
        out.print(Text("\nin doubt", "bold"))
        for doubt in document["doubts"]:
            out.print(Text(str(doubt), "yellow"), soft_wrap=True)


def _error(ratio: float | None) -> Text:
    """A relative error; files of earlier daemons lack some."""
    if ratio is None:
        return Text("")
    return Text(f"{ratio:.0%}", "" if ratio <= _GOOD_ERROR else "yellow")


def _render_check(check: Mapping[str, Any], out: Console) -> None:
    out.print(Text("\nwhole pipeline, ns per packet", "bold"))
    table = plain_table(
        "<packets from", "trigger", "per poll", "measured", "sum of parts", "predicted"
    )
    for point in check["points"]:
        table.add_row(
            "another core" if point["from_other_core"] else "the same core",
            str(point["trigger_pkts"]),
            f"{point['pkts_per_loop']:.1f}",
            f"{point['measured_ns_per_pkt']:.1f}",
            f"{point['alone_ns_per_pkt']:.1f}",
            f"{point['law_ns_per_pkt']:.1f}",
        )
    out.print(table)
    out.print(
        f"Inside the pipeline a batch costs {check['batch_factor']:.2f} and a packet "
        f"{check['pkt_factor']:.2f} times the cost measured alone{_behind(check)}. "
        "The costs above include this.",
        soft_wrap=True,
    )


def _behind(check: Mapping[str, Any]) -> str:
    # Files of earlier daemons have one pair for all modules.
    if "behind_batch_factor" not in check:
        return ""
    batch, pkt = check["behind_batch_factor"], check["behind_pkt_factor"]
    return f", behind splitters {batch:.2f} and {pkt:.2f}"


def _half_width(interval: Sequence[float]) -> float:
    return (interval[1] - interval[0]) / 2


def check_plot_path(path: Path) -> None:
    """Reports a figure that cannot be written before anything is measured."""
    if path.suffix not in _SUFFIXES:
        raise BadInput(Problem("unknown figure format", str(path), "--plot", f"use {_SUFFIXES}"))
    if not path.absolute().parent.is_dir():
        raise BadInput(Problem("the folder does not exist", str(path.parent), "--plot", "make it"))


def plot_profile(document: Mapping[str, Any], path: Path) -> None:
    """Two figures in one file: rate against batch size, and service time against batch size."""
    # Loaded here: the import takes most of a second.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    rates, times = figure.subplots(1, 2)
    shown = sorted(document["modules"], key=_time_of_full, reverse=True)
    chosen = _spread(shown, _MAX_CURVES)
    for i, module in enumerate(chosen):
        _draw(module, f"C{i % 10}", "o" if i < 10 else "s", rates, times)
    _dress(rates, "rate, Mpps", "rate against batch size")
    _dress(times, "service time of a batch, ns", "service time against batch size")
    # The law is a straight line on linear axes; one module of another magnitude would flatten the
    # rest.
    full = [_time_of_full(module) for module in chosen]
    if full and full[0] <= _MAX_SPREAD * full[len(full) // 2]:
        times.set_yscale("linear")
    rates.set_xscale("log", base=2)
    left_out = len(shown) - len(chosen)
    title = f"measured on {document['cpu']}"
    figure.suptitle(title + (f"; {left_out} modules not drawn" if left_out else ""), fontsize=9)
    figure.legend(*times.get_legend_handles_labels(), fontsize=7, loc="outside right center")
    figure.savefig(path, dpi=150)


def _time_of_full(module: Mapping[str, Any]) -> float:
    return float(module["table_ns"][-1]) if module["table_ns"] else 0.0


def _spread(modules: list[Any], most: int) -> list[Any]:
    """At most `most` of the list, evenly spaced, including both ends."""
    if len(modules) <= most:
        return modules
    return [modules[i * (len(modules) - 1) // (most - 1)] for i in range(most)]


def _draw(module: Mapping[str, Any], colour: str, mark: str, rates: Axes, times: Axes) -> None:
    table = module["table_ns"]
    if not table:
        return
    sizes = list(range(1, len(table) + 1))
    positive = [(n, ns) for n, ns in zip(sizes, table, strict=True) if ns > 0]
    rates.plot(
        [n for n, _ in positive], [n / ns * 1e3 for n, ns in positive], mark + "-", color=colour,
        markersize=2.5, linewidth=0.8,
    )  # fmt: skip
    times.plot(sizes, table, mark, color=colour, markersize=2.5, label=str(module["name"]))
    law = [module["cost_per_batch_ns"] + module["cost_per_pkt_ns"] * n for n in sizes]
    times.plot(sizes, law, "-", color=colour, linewidth=0.8)


def _dress(axes: Axes, y_label: str, title: str) -> None:
    axes.set_xlabel("batch size, packets")
    axes.set_ylabel(y_label)
    axes.set_yscale("log")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3, which="both", linewidth=0.4)
