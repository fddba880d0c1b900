# SPDX-License-Identifier: BSD-3-Clause
"""command.py - what `batchplane experiment` does: runs, prints, writes data and figures."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base.interrupts import Interrupted, interruptible
from ..base.plain_table import plain_table
from ..base.problems import BadInput, Problem
from ..costs.costs import load_costs
from .catalogue import ALL, EXPERIMENTS, find
from .common.experiment import Outcome, Setup
from .common.fidelity import Done, write_fidelity
from .common.files import write_outcome
from .common.page import Section, write_page
from .common.page_facts import Made
from .common.plans import run_plans
from .common.store import Runner, Store, make_bar
from .common.verdict import DIFFERENT, Verdict
from .modes import choose_modes

_STYLES = {"same": "green", "better": "green", "different": "yellow"}


@dataclass(frozen=True)
class ExperimentOptions:
    """The options of the command."""

    out: Path = Path("out/experiments")
    costs: str = "prior"  # or several, separated by commas
    is_quick: bool = True
    is_measured: bool | None = None  # None: each in its usual way
    jobs: int | None = None
    write: Path | None = None
    report: Path | None = None  # None: beside the data, if all were requested
    as_json: bool = False


def list_experiments(as_json: bool, out: Console) -> None:
    """Prints all experiments and how you can run them."""
    if as_json:
        rows = [
            {"name": e.name, "title": e.title, "controllers": e.controllers, "runs": e.runs}
            for e in EXPERIMENTS.values()
        ]
        print(json.dumps(rows, indent=2), flush=True)
        return
    table = plain_table("<name", "<runs", "<what")
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, ", ".join(experiment.runs), experiment.title)
    out.print(table)


def run_experiments(
    names: Sequence[str], options: ExperimentOptions, out: Console, errors: Console
) -> int:
    """Runs experiments one after the other. Returns the exit code."""
    experiments = find(names)
    _check(options)
    chosen, left_out = choose_modes(
        experiments, names, options.is_measured, _costs_names(options.costs), options.is_quick
    )
    for line in left_out:
        errors.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)
    store = Store(options.out / "cases")
    sections: dict[int, Section] = {}

    def note(place: int, outcome: Outcome) -> None:
        experiment, setup = chosen[place]
        figure = write_outcome(experiment, outcome, setup, _folder_of(setup, options))
        sections[place] = Section(experiment, outcome, setup, figure)

    start_s = time.monotonic()
    try:
        with interruptible(), make_bar(errors) as bar:
            runner = Runner(store, options.jobs, bar)
            run_plans(chosen, runner, note)
    except Interrupted:
        # The old signal handlers are back here: a second signal ends the program.
        errors.print(
            f"interrupted: {store.made} runs are kept in {store.folder}; the same command "
            "continues from there"
        )
        return 130
    warnings = [disturbed_line(runner)] if runner.disturbed else []
    warnings += [f"{path} was damaged; its run was repeated" for path in store.broken]
    for line in warnings:
        errors.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)
    ordered = [sections[place] for place in sorted(sections)]
    done = [(each.experiment, each.outcome, each.setup) for each in ordered]
    if options.write is not None:
        write_fidelity(options.write, done)
    page = options.report or (options.out / "report.html" if ALL in names else None)
    if page is not None:
        made = Made(time.monotonic() - start_s, store.made, store.reused, tuple(warnings))
        write_page(page, ordered, made)
        errors.print(f"report: {page}", style="dim", soft_wrap=True)
    _show(done, options, store, out, errors)
    return 0


def disturbed_line(runner: Runner) -> str:
    """A line about runs that other programs disturbed."""
    names = ", ".join(runner.disturbed[:3]) + (", .." if len(runner.disturbed) > 3 else "")
    return (
        f"other programs disturbed {len(runner.disturbed)} runs ({names}): their rates and delays "
        "mean little, and they are run again next time"
    )


def _check(options: ExperimentOptions) -> None:
    """Reports predictable errors before the first run."""
    problems = []
    if options.out.exists() and not options.out.is_dir():
        problems.append(Problem(f"'{options.out}' is not a folder", "command line", "--out"))
    if options.write is not None and not options.write.absolute().parent.is_dir():
        message = f"there is no folder '{options.write.parent}'"
        problems.append(Problem(message, "command line", "--write"))
    if options.report is not None and options.report.is_dir():
        problems.append(Problem(f"'{options.report}' is a folder", "command line", "--report"))
    if problems:
        raise BadInput(problems)
    for costs in _costs_names(options.costs):
        load_costs(costs)


def _costs_names(costs: str) -> list[str]:
    """The costs by name; files by absolute path, since processes may have other working folders."""
    given = [costs] if Path(costs).is_file() else [each.strip() for each in costs.split(",")]
    names = [each for each in given if each]
    stems = [Path(each).stem for each in names]
    if twice := [stem for stem in stems if stems.count(stem) > 1]:
        message = f"there are two costs '{twice[0]}', whose results would have one folder"
        raise BadInput(Problem(message, "command line", "--costs", "rename a file"))
    return [str(Path(each).resolve()) if Path(each).is_file() else each for each in names]


def _folder_of(setup: Setup, options: ExperimentOptions) -> Path:
    """With several costs, simulated results have a folder for each."""
    if len(_costs_names(options.costs)) == 1 or setup.is_measured or not setup.costs:
        return options.out
    return options.out / Path(setup.costs).stem


# --- output ---------------------------------------------------------------------------------------


def _show(
    done: Sequence[Done], options: ExperimentOptions, store: Store, out: Console, errors: Console
) -> None:
    if options.as_json:
        print(json.dumps(_json(done, options), indent=2), flush=True)
    else:
        for experiment, outcome, setup in done:
            out.print(Text(f"{experiment.name}: {experiment.title}", style="bold"))
            out.print(Text(setup.origin, style="dim"))
            out.print(rows_table(outcome))
            out.print(verdict_table(outcome.verdicts))
            out.print()
    different = sum(v.verdict == DIFFERENT for _, outcome, _ in done for v in outcome.verdicts)
    total = sum(len(outcome.verdicts) for _, outcome, _ in done)
    errors.print(
        f"{store.made} runs, {store.reused} kept from before; {total - different} of {total} "
        f"claims hold; data and figures in {options.out}",
        style="dim",
    )


def _json(done: Sequence[Done], options: ExperimentOptions) -> Any:
    return {
        "costs": ",".join(_costs_names(options.costs)),
        "quick": options.is_quick,
        "experiments": [
            {
                "name": experiment.name,
                "label": setup.label,
                "costs": setup.costs,
                "rows": outcome.rows,
                "verdicts": [verdict.as_json() for verdict in outcome.verdicts],
            }
            for experiment, outcome, setup in done
        ],
    }


def rows_table(outcome: Outcome) -> Table:
    """The experiment's numbers as a table."""
    table = plain_table(*(heading for _, heading, _ in outcome.columns))
    for row in outcome.rows:
        table.add_row(*(text(row[key]) for key, _, text in outcome.columns))
    return table


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Claims and verdicts as a table."""
    table = plain_table("<claim", "<paper", "<ours", "<verdict", "<why")
    for v in verdicts:
        style = _STYLES[v.verdict]
        table.add_row(v.claim, v.paper, v.ours, Text(v.verdict, style=style), v.reason)
    return table
