# SPDX-License-Identifier: BSD-3-Clause
"""profile_devices.py - what `batchplane profile --devices` does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ..admission.weights import load_fitted
from ..base.consoles import print_json
from ..base.problems import BadInput, Problem, RunFailed
from ..base.whole_file import write_whole
from ..costs.devices import keep_device_profile
from ..daemon.process import find_program
from ..profile.device_measure import (
    DeviceOptions,
    Found,
    find_devices,
    measure_with_daemon,
    profile_devices,
)
from ..profile.device_report import render_devices


@dataclass(frozen=True)
class DeviceRequest:
    """What to measure, and where the result goes."""

    modules: tuple[str, ...] = ()
    pipeline: str | None = None
    params: tuple[str, ...] = ()
    out: Path | None = None
    watts: tuple[str, ...] = ()
    is_quick: bool = False
    cores: str | None = None
    as_json: bool = False


def profile_on_devices(request: DeviceRequest, out: Console, errors: Console) -> dict[str, Any]:
    """Measures, keeps or writes, and prints; returns the document."""
    if request.params and request.pipeline is None:
        raise BadInput(Problem("--param is for a pipeline", "command line", fix="give --pipeline"))
    if request.out is not None and not request.out.absolute().parent.is_dir():
        raise BadInput(
            Problem("the folder does not exist", str(request.out.parent), "--out", "make it")
        )
    try:
        find_program()
    except RunFailed as error:
        raise BadInput(Problem(error.message, "profile --devices", fix=error.fix)) from error
    found = find_devices()
    watts = declared_watts(request.watts, found)
    options = DeviceOptions(cores=request.cores)
    if request.is_quick:
        options = DeviceOptions.quick(request.cores)
    pipeline = None
    if request.pipeline is not None:
        pipeline = load_fitted(request.pipeline, request.params, errors).pipeline
    columns = (TextColumn("measuring"), BarColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("measuring")
        document = profile_devices(
            pipeline, request.modules, options, watts, found, measure_with_daemon(options),
            lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    if request.out is not None:
        write_whole(request.out, json.dumps(document, indent=1) + "\n")
    # A profile of some applications must not replace one of all.
    is_kept = request.out is None and not request.modules
    kept = keep_device_profile(document, pipeline) if is_kept else request.out
    if request.as_json:
        print_json(document)
    else:
        render_devices(document, out)
        out.print(f"written: {kept}" if kept else "not kept: give --out FILE", soft_wrap=True)
    return document


def declared_watts(words: Sequence[str], found: Found) -> dict[str, dict[str, float]]:
    """Parses NAME=IDLE:ACTIVE into watts by device. Raises BadInput."""
    names = [row["name"] for row in found.devices]
    watts = {}
    for word in words:
        name, _, given = word.partition("=")
        try:
            idle, active = (float(part) for part in given.split(":"))
        except ValueError:
            idle = active = -1
        if not 0 <= idle <= active <= 10_000 or name not in names:
            message = f"'{word}' does not say what a device draws"
            fix = f"cores=5:30, idle and active watts of one of {', '.join(names)}"
            raise BadInput(Problem(message, "command line", "--watts", fix))
        watts[name] = {"idle_w": idle, "active_w": active}
    return watts
