# SPDX-License-Identifier: BSD-3-Clause
"""profile.py - what `batchplane profile` does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ..admission.weights import load_fitted
from ..base.consoles import print_json
from ..base.problems import BadInput, Problem
from ..costs.doubt import judge
from ..profile.measure import ProfileOptions, profile_kinds, profile_pipeline
from ..profile.ports import with_ports
from ..profile.report import check_plot_path, plot_profile, render_profile
from ..profile.surest import surest


@dataclass(frozen=True)
class ProfileRequest:
    """What to measure, and where the result goes."""

    modules: tuple[str, ...] = ()
    pipeline: str | None = None
    params: tuple[str, ...] = ()
    out: Path | None = None
    plot: Path | None = None
    is_quick: bool = False
    cores: str | None = None
    as_json: bool = False


def profile(request: ProfileRequest, out: Console, errors: Console) -> dict[str, Any]:
    """Measures, prints and writes; returns the costs document."""
    _check_files(request)
    if request.params and request.pipeline is None:
        raise BadInput(Problem("--param is for a pipeline", "command line", fix="give --pipeline"))
    options = ProfileOptions.quick() if request.is_quick else ProfileOptions()
    options = ProfileOptions(options.ms_per_module, options.passes, request.cores)
    columns = (TextColumn("measuring"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("measuring")

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        def again(doubtful: dict[str, Any]) -> None:
            line = f"measuring a second time: {judge(doubtful).line()}"
            errors.print(Text(line, "dim"), soft_wrap=True)

        if request.pipeline is None:
            document = surest(
                lambda: profile_kinds(request.modules, options, progress), _doubt_of, again
            )
        else:
            pipeline = load_fitted(request.pipeline, request.params, errors).pipeline

            def measure() -> dict[str, Any]:
                measured = profile_pipeline(pipeline, request.modules, options, progress)
                if not request.modules:
                    measured["missing"] = with_ports(measured, pipeline, options)
                return measured

            document = surest(measure, _doubt_of, again)
    missing = document.pop("missing", [])
    document["judgement"] = judge(document).as_json()
    for line in missing:
        errors.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)
    if request.out is not None:
        _write(document, request.out)
    if request.plot is not None:
        plot_profile(document, request.plot)
    if request.as_json:
        print_json(document)
    else:
        render_profile(document, out)
        for path in (request.out, request.plot):
            if path is not None:
                out.print(f"written: {path}", soft_wrap=True)
    return document


def _doubt_of(document: Mapping[str, Any]) -> float:
    return judge(document).doubt


def _check_files(request: ProfileRequest) -> None:
    """Reports files that cannot be written before minutes of measuring."""
    if request.plot is not None:
        check_plot_path(request.plot)
    if request.out is not None and not request.out.absolute().parent.is_dir():
        raise BadInput(
            Problem("the folder does not exist", str(request.out.parent), "--out", "make it")
        )


def _write(document: dict[str, Any], path: Path) -> None:
    try:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(
            Problem(f"cannot be written: {error.strerror}", str(path), "--out")
        ) from error
