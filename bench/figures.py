# SPDX-License-Identifier: BSD-3-Clause
"""figures.py - computes and prints the figures of the benchmark scripts; runs nothing."""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

VERSION = 1
# A change counts if its whole interval is beyond this.
NOTICEABLE = 0.01
RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


def median_interval(values: Sequence[float], seed: int = 1) -> Interval:
    """The median with its bootstrap interval; the same values give the same interval."""
    if not values:
        raise ValueError("no values")
    draw = random.Random(seed)
    medians = sorted(
        statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    cut = RESAMPLES // 40
    return Interval(statistics.median(values), medians[cut], medians[-1 - cut])


def change_verdict(ratio: Interval) -> str:
    """Verdict on new time over old time: slower, faster or same."""
    if ratio.low > 1 + NOTICEABLE:
        return "slower"
    if ratio.high < 1 - NOTICEABLE:
        return "faster"
    return "same"


def target_verdict(figure: Interval, limit: float, is_at_most: bool) -> str:
    """good if the whole interval meets the limit, missed if none of it does, else open."""
    best, worst = (figure.low, figure.high) if is_at_most else (figure.high, figure.low)

    def keeps(value: float) -> bool:
        return value <= limit if is_at_most else value >= limit

    if keeps(worst):
        return "good"
    return "open" if keeps(best) else "missed"


def merge(results: Mapping[str, Json], head: Json) -> Json:
    """One document of all benchmarks that ran; rejects results of another version."""
    for name, result in results.items():
        if result.get("version") != VERSION:
            raise ValueError(f"{name} wrote version {result.get('version')}, not {VERSION}")
    cpus = sorted({str(result["cpu"]) for result in results.values()})
    verdicts: dict[str, int] = {}
    for _, figure in figures_of(results):
        if "verdict" in figure:
            verdicts[figure["verdict"]] = verdicts.get(figure["verdict"], 0) + 1
    return {
        "version": VERSION,
        **head,
        "cpu": cpus[0] if len(cpus) == 1 else cpus,
        "verdicts": verdicts,
        "benchmarks": dict(results),
    }


def figures_of(results: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """Every figure with the name of its benchmark."""
    return [(name, figure) for name, result in results.items() for figure in result["figures"]]


def cost_table(modules: Json, hop: Json | None) -> Json:
    """The table of module costs, with the engine's hop if it was measured."""
    table: Json = dict(modules["cost_table"])
    if hop is not None and "cost" in hop:
        table["engine_hop"] = hop["cost"]
    return table


def number(value: float) -> str:
    """The number with up to three decimals, for tables."""
    if value != 0 and abs(value) < 1:
        return f"{value:.3f}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def target_text(figure: Json) -> str:
    """The limit as the table shows it."""
    if "target" not in figure:
        return ""
    return f"{'<=' if figure['is_at_most'] else '>='} {figure['target']:g}"


def figure_row(name: str, figure: Json) -> list[str]:
    """One row of the table."""
    spread = f"[{number(figure['low'])}, {number(figure['high'])}]"
    return [
        name,
        figure["label"],
        number(figure["value"]),
        spread,
        figure["unit"],
        target_text(figure),
        figure.get("verdict", ""),
    ]


HEAD = ["benchmark", "figure", "value", "95 % interval", "unit", "target", "verdict"]
RIGHT = {"value", "95 % interval", "target"}


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = HEAD) -> list[str]:
    """Lines with aligned columns; numbers are right-aligned."""
    everything = [list(head), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in everything) for i in range(len(head))]
    lines = []
    for row in everything:
        cells = [
            cell.rjust(width) if head[i] in RIGHT else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return lines


def times_of(result: Json) -> dict[str, float]:
    """The figures that two runs of a benchmark can compare: those in ns, by label."""
    return {
        figure["label"]: figure["value"]
        for figure in result["figures"]
        if figure["unit"] in ("ns", "ns per packet") and "cost per" not in figure["label"]
    }


def compare_rounds(
    rounds: Sequence[tuple[Json, Json]], measure: Callable[[Json], dict[str, float]] = times_of
) -> list[tuple[str, Interval, str]]:
    """For each figure of both sides: new time over old time over all rounds, and the verdict."""
    ratios: dict[str, list[float]] = {}
    for old, new in rounds:
        before, after = measure(old), measure(new)
        for label, value in after.items():
            if label in before and before[label] > 0:
                ratios.setdefault(label, []).append(value / before[label])
    rows = []
    for label, values in ratios.items():
        interval = median_interval(values)
        rows.append((label, interval, change_verdict(interval)))
    return rows
