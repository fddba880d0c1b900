# SPDX-License-Identifier: BSD-3-Clause
"""command.py - what `batchplane experiment` does: runs, prints, writes data and figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..costs import load_costs
from ..live import Interrupted, interruptible
from ..plain_table import plain_table
from ..problems import BadInput, Problem, RunFailed
from .catalogue import EXPERIMENTS, find
from .experiment import Experiment, Outcome, Setup
from .fidelity import write_fidelity
from .store import Runner, Store, make_bar
from .verdict import DIFFERENT, Verdict

_STYLES = {"same": "green", "better": "green", "different": "yellow"}


@dataclass(frozen=True)
class ExperimentOptions:
    """The options of the command."""

    out: Path = Path("out/experiments")
    costs: str = "prior"
    is_quick: bool = False
    is_measured: bool = False
    jobs: int | None = None
    write: Path | None = None
    as_json: bool = False


def list_experiments(as_json: bool, out: Console) -> None:
    """All experiments and how they can be run."""
    if as_json:
        rows = [
            {"name": e.name, "title": e.title, "controllers": e.controllers, "runs": ["simulated"]}
            for e in EXPERIMENTS.values()
        ]
        print(json.dumps(rows, indent=2), flush=True)
        return
    table = plain_table("<name", "<runs", "<what")
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, "simulated", experiment.title)
    out.print(table)


def run_experiments(
    names: Sequence[str], options: ExperimentOptions, out: Console, errors: Console
) -> int:
    """Runs them one after the other. Returns the exit code."""
    experiments = find(names)
    _check(experiments, options)
    setup = Setup(_costs_name(options.costs), options.is_quick)
    store = Store(options.out / "cases")
    done: list[tuple[Experiment, Outcome]] = []
    with interruptible():
        try:
            with make_bar(errors) as bar:
                runner = Runner(store, options.jobs, bar)
                for experiment in experiments:
                    runner.describe(experiment.name)
                    outcome = run_plan(experiment, setup, runner)
                    _write_outcome(experiment, outcome, setup, options.out)
                    done.append((experiment, outcome))
        except Interrupted:
            errors.print(
                f"interrupted: {store.made} runs are kept in {store.folder}; the same command "
                "goes on from there"
            )
            return 130
    if options.write is not None:
        write_fidelity(options.write, done, setup)
    _show(done, setup, options, store, out, errors)
    return 0


def run_plan(experiment: Experiment, setup: Setup, runner: Runner) -> Outcome:
    """Feeds the plan the results of what it asks for."""
    plan = experiment.plan(setup)
    cases = next(plan)
    while True:
        results = runner.run(cases)
        try:
            cases = plan.send(results)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome


def _check(experiments: Sequence[Experiment], options: ExperimentOptions) -> None:
    """What can be seen to fail fails before the first run."""
    problems = []
    if options.is_measured:
        names = ", ".join(experiment.name for experiment in experiments)
        needed = dict.fromkeys(name for e in experiments for name in e.controllers)
        problems.append(
            Problem(
                f"{names} cannot be measured: no experiment drives a daemon, and it would need "
                f"the controllers {', '.join(needed)} there",
                "command line",
                "--measured",
                "--simulated",
            )
        )
    if options.out.exists() and not options.out.is_dir():
        problems.append(Problem(f"'{options.out}' is no folder", "command line", "--out"))
    if options.write is not None and not options.write.absolute().parent.is_dir():
        message = f"there is no folder '{options.write.parent}'"
        problems.append(Problem(message, "command line", "--write"))
    if problems:
        raise BadInput(problems)
    load_costs(options.costs)


def _costs_name(costs: str) -> str:
    """Files by their whole path: processes may have other folders."""
    path = Path(costs)
    return str(path.resolve()) if path.is_file() else costs


# --- files ----------------------------------------------------------------------------------------


def _write_outcome(experiment: Experiment, outcome: Outcome, setup: Setup, folder: Path) -> None:
    place = folder / experiment.name
    data = {
        "experiment": experiment.name,
        "label": "simulated",
        "costs": setup.costs,
        "quick": setup.is_quick,
        "rows": outcome.rows,
        "series": outcome.series,
        "verdicts": [verdict.as_json() for verdict in outcome.verdicts],
    }
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / "result.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        with (place / f"{experiment.name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(outcome.rows[0]))
            writer.writeheader()
            writer.writerows(outcome.rows)
        figure = outcome.draw()
        for suffix in ("png", "svg"):
            figure.savefig(place / f"{experiment.figure}.{suffix}", dpi=120)
    except OSError as error:
        raise RunFailed(f"{place} cannot be written: {error.strerror or error}") from error


# --- output ---------------------------------------------------------------------------------------


def _show(
    done: Sequence[tuple[Experiment, Outcome]],
    setup: Setup,
    options: ExperimentOptions,
    store: Store,
    out: Console,
    errors: Console,
) -> None:
    if options.as_json:
        print(json.dumps(_json(done, setup), indent=2), flush=True)
    else:
        for experiment, outcome in done:
            out.print(Text(f"{experiment.name}: {experiment.title}", style="bold"))
            out.print(Text(setup.origin, style="dim"))
            out.print(rows_table(outcome))
            out.print(verdict_table(outcome.verdicts))
            out.print()
    different = sum(v.verdict == DIFFERENT for _, outcome in done for v in outcome.verdicts)
    total = sum(len(outcome.verdicts) for _, outcome in done)
    errors.print(
        f"{store.made} runs, {store.reused} kept from before; {total - different} of {total} "
        f"claims hold; data and figures in {options.out}",
        style="dim",
    )


def _json(done: Sequence[tuple[Experiment, Outcome]], setup: Setup) -> Any:
    return {
        "label": "simulated",
        "costs": setup.costs,
        "quick": setup.is_quick,
        "experiments": [
            {
                "name": experiment.name,
                "rows": outcome.rows,
                "verdicts": [verdict.as_json() for verdict in outcome.verdicts],
            }
            for experiment, outcome in done
        ],
    }


def rows_table(outcome: Outcome) -> Table:
    """The experiment's numbers."""
    table = plain_table(*(heading for _, heading, _ in outcome.columns))
    for row in outcome.rows:
        table.add_row(*(text(row[key]) for key, _, text in outcome.columns))
    return table


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Claims and verdicts."""
    table = plain_table("<claim", "<paper", "<ours", "<verdict", "<why")
    for v in verdicts:
        style = _STYLES[v.verdict]
        table.add_row(v.claim, v.paper, v.ours, Text(v.verdict, style=style), v.reason)
    return table
