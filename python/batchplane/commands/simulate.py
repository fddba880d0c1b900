# SPDX-License-Identifier: BSD-3-Clause
"""simulate.py - what `batchplane simulate` does: reads, runs all cases, prints, writes files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ..base.interrupts import Interrupted, interruptible
from ..base.limits import EVENT_NS, PERIOD_NS, Limit
from ..base.problems import BadInput, Problem, RunFailed
from ..base.units import duration_text, short_rate, three_digits
from ..control.advice import advice
from ..control.python import NO_CONTROLLER
from ..lang.load import parse_overrides
from ..show.report import render_report
from ..sim.cases import Case, comparison_rows, comparison_table, run_cases
from ..sim.prepare import Inputs, duration_ns, prepare
from ..sim.result import Result
from ..sim.spec import load_machine

if TYPE_CHECKING:
    from pandas import DataFrame

_PERIOD_NS = 10_000_000
TRACE_SUFFIXES = (".csv", ".parquet")
# Enough for figures, few enough to hold in memory.
_PLOT_PACKETS = 50_000
_PLOT_FIRINGS = 200_000


@dataclass(frozen=True)
class SimulateOptions:
    traffic: str | None = None
    costs: str | None = None
    machine: Path | None = None
    run_order: str | None = None
    scenario: Path | None = None
    sets: tuple[str, ...] = ()
    duration: str | None = None
    period: str | None = None  # None: the period of the pipeline's controller, or 10 ms
    controllers: tuple[str | None, ...] = (None,)  # None: the pipeline's, or none
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: int = 1
    jobs: int | None = None
    plot: Path | None = None
    trace: Path | None = None
    trace_packets: int = 100_000
    json_file: Path | None = None
    as_json: bool = False


def parse_duration_word(word: str, option: str, limit: Limit = EVENT_NS) -> int:
    """Parses '100ms' or a number of seconds, and checks the limit. Raises BadInput."""
    try:
        ns = duration_ns(round(float(word) * 1e9), option)
    except (ValueError, OverflowError):
        ns = duration_ns(word, option)
    if not limit.least <= ns <= limit.most:
        least, most = (duration_text(bound) for bound in limit)
        message = f"'{word}' is out of range"
        raise BadInput(Problem(message, "command line", option, f"{least} to {most}"))
    return ns


def simulate(
    name: str, overrides: Sequence[str], options: SimulateOptions, out: Console, errors: Console
) -> int:
    """Runs every case and reports. Returns the exit code."""
    _check_files(options)
    inputs = prepare(
        name,
        options.traffic,
        options.costs,
        overrides=parse_overrides(overrides),
        scenario=options.scenario,
        sets=options.sets,
        machine=None if options.machine is None else load_machine(options.machine),
        run_order=options.run_order,
    )
    for problem in inputs.warnings:
        errors.print(Text.assemble(("warning: ", "yellow"), problem), soft_wrap=True)
    cases = _cases(options, inputs.document.pipeline.get("controller", {}))
    for controller in dict.fromkeys(case.controller for case in cases):
        if line := advice(controller, inputs.document.pipeline):
            errors.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)
    with interruptible():
        try:
            results = run_cases(inputs, cases, options.jobs, errors)
        except Interrupted:
            return 130
    if options.as_json:
        print(json.dumps(_json(results), indent=2), flush=True)
    else:
        _print(results, inputs, out)
    _write_files(results, options, errors)
    return 1 if _tell_what_went_wrong(results, errors) else 0


def _cases(options: SimulateOptions, own: Mapping[str, Any]) -> list[Case]:
    """One case for each controller and seed; `own` is the pipeline's `controller` section."""
    duration = options.duration
    length_ns = None if duration is None else parse_duration_word(duration, "--duration")
    period_ns = int(own.get("period_ns", _PERIOD_NS))
    if options.period is not None:
        period_ns = parse_duration_word(options.period, "--period", PERIOD_NS)
    settings = {**own.get("settings", {}), **options.settings}
    controllers = [name or own.get("name", NO_CONTROLLER) for name in options.controllers]
    packets = max(
        options.trace_packets if options.trace else 0, _PLOT_PACKETS if options.plot else 0
    )
    return [
        Case(
            controller,
            seed,
            length_ns,
            period_ns,
            settings,
            packets,
            _PLOT_FIRINGS if options.plot else 0,
        )
        for controller in dict.fromkeys(controllers)
        for seed in range(1, options.seeds + 1)
    ]


def _check_files(options: SimulateOptions) -> None:
    """Errors that can be predicted are reported before the first run, not after it."""
    problems = []
    for path, option in ((options.trace, "--trace"), (options.json_file, "--json-file")):
        if path is not None and not path.absolute().parent.is_dir():
            problems.append(Problem(f"there is no folder '{path.parent}'", "command line", option))
    if options.trace is not None and options.trace.suffix not in TRACE_SUFFIXES:
        message = f"'{options.trace}' is neither .csv nor .parquet"
        problems.append(Problem(message, "command line", "--trace"))
    if options.plot is not None and options.plot.exists() and not options.plot.is_dir():
        problems.append(Problem(f"'{options.plot}' is not a folder", "command line", "--plot"))
    if not options.controllers:
        problems.append(Problem("no controller is given", "command line", "--controller"))
    if options.trace is not None and len(options.controllers) * options.seeds > 1:
        message = "a trace holds one run, but several are requested"
        problems.append(Problem(message, "command line", "--trace", "without --compare or --seeds"))
    if problems:
        raise BadInput(problems)


# --- output ---------------------------------------------------------------------------------------


def _print(results: Sequence[Result], inputs: Inputs, out: Console) -> None:
    first = results[0]
    out.print(render_report(first.first, first.last, first.hello, first.report))
    if len(results) > 1:
        rows = comparison_rows(results)
        out.print(Text(f"\n{first.pipeline}, {first.label}:", style="bold"))
        out.print(comparison_table(rows))
        out.print(Text(f"the report above is for {first.controller}, seed {first.seed}", "dim"))
    for event in first.events:
        out.print(Text(f"at {event}", "dim"))
    speed = sum(result.rate_pps * result.simulated_ns / 1e9 for result in results)
    cpu_s = sum(result.cpu_s for result in results)
    virtual_s = sum(result.simulated_ns for result in results) / 1e9
    out.print(
        Text(
            f"\n{inputs.origin}; {three_digits(virtual_s)} s simulated in {three_digits(cpu_s)} s "
            f"of a core, {short_rate(speed / cpu_s if cpu_s else 0)}",
            "dim",
        )
    )


def _json(results: Sequence[Result]) -> Any:
    if len(results) == 1:
        return results[0].as_json()
    return {
        "label": results[0].label,
        "comparison": comparison_rows(results),
        "runs": [result.as_json() for result in results],
    }


def _write_files(results: Sequence[Result], options: SimulateOptions, errors: Console) -> None:
    if options.json_file is not None:
        _write(options.json_file, lambda path: path.write_text(json.dumps(_json(results))))
    if options.trace is not None:
        frame = results[0].packets
        if frame is None or frame.empty:
            raise RunFailed(
                f"no packets recorded in {options.trace}",
                "check that there is traffic and that it arrives",
            )
        frame = frame.head(options.trace_packets)  # figures may have asked for more packets
        write_trace(frame, options.trace)
        errors.print(f"{len(frame)} packets in {options.trace}", style="dim")
    if options.plot is not None:
        from ..plots.files import write_comparison, write_plots

        written = [path for result in results for path in write_plots(result, options.plot)]
        rows = comparison_rows(results)
        if len(rows) > 1:
            first = results[0]
            written.append(write_comparison(rows, first.pipeline, first.label, options.plot))
        errors.print(f"{len(written)} figures in {options.plot}", style="dim")


def write_trace(frame: DataFrame, path: Path) -> None:
    """Writes the packets as CSV or Parquet, depending on the suffix."""
    if path.suffix == ".csv":
        _write(path, lambda path: frame.to_csv(path, index=False))
    else:
        _write(path, lambda path: frame.to_parquet(path, index=False))


def _write(path: Path, write: Any) -> None:
    try:
        write(path)
    except OSError as error:
        raise RunFailed(f"{path} cannot be written: {error.strerror or error}") from error


def _tell_what_went_wrong(results: Sequence[Result], errors: Console) -> bool:
    """Prints warnings and faults; true if packets are missing or a controller failed."""
    is_bad = False
    for result in results:
        for warning in dict.fromkeys(result.warnings):
            errors.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
        for fault in result.faults[:3]:
            errors.print(Text.assemble(("error: ", "bold red"), fault.line()), soft_wrap=True)
        if len(result.faults) > 3:
            errors.print(f"and {len(result.faults) - 3} more controller faults")
        if result.faults:
            errors.print(result.faults[0].trace, style="dim", soft_wrap=True)
        balance = result.report["balance"]
        is_bad = is_bad or bool(result.faults) or not balance.get("is_exact", True)
    return is_bad
