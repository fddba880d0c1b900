# SPDX-License-Identifier: BSD-3-Clause
"""experiment.py - the arguments of `batchplane experiment`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors, out

app = typer.Typer()
EPILOG = (
    "Finished runs are kept in the output folder and reused until something they depend on "
    "changes. docs/fidelity.md explains the results."
)

Names = Annotated[
    list[str], typer.Argument(metavar="NAME...", help="names of experiments, `all`, or `list`")
]
IsMeasured = Annotated[
    bool | None,
    typer.Option(
        "--measured/--simulated",
        help="run on a daemon, or in virtual time (default: depends on the experiment, see `list`)",
    ),
]
IsFull = Annotated[
    bool,
    typer.Option(
        "--full/--quick", help="the papers' periods (takes hours), or short ones (default)"
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="where to write data and figures")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="parallel processes (default: one per core)"),
]
CostsOf = Annotated[
    str,
    typer.Option(
        "--costs",
        metavar="FILE|prior|epyc|paper,...",
        help="module costs; paper: as published in the papers; several: all experiments with each",
    ),
]
Write = Annotated[
    Path | None, typer.Option("--write", metavar="FILE.md", help="write the verdicts to this page")
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html",
        help="write one page with everything (with `all`: report.html next to the data)",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text")]


@app.command("experiment", epilog=EPILOG)
def experiment_command(
    names: Names,
    is_measured: IsMeasured = None,
    is_full: IsFull = False,
    folder: Out = Path("out/experiments"),
    jobs: Jobs = None,
    costs: CostsOf = "prior",
    write: Write = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Reproduce the papers' tables and figures, with a verdict on each claim."""
    # Loaded here: other commands do not need numpy.
    from ..experiments.command import ExperimentOptions, list_experiments, run_experiments

    if names == ["list"]:
        list_experiments(as_json, out())
        return
    options = ExperimentOptions(
        folder, costs, not is_full, is_measured, jobs, write, report, as_json
    )
    raise typer.Exit(run_experiments(names, options, out(), errors()))
