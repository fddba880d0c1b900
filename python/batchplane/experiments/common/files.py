# SPDX-License-Identifier: BSD-3-Clause
"""files.py - the data and figures of an outcome; measured ones have their own folder."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from ...base.whole_file import write_whole
from .experiment import Experiment, Outcome, Setup

_FIX = "finished runs are kept; --out DIR elsewhere"


def outcome_folder(experiment: Experiment, setup: Setup, folder: Path) -> Path:
    """The folder of an outcome: NAME, or NAME/LABEL if the label is not the usual one."""
    place = folder / experiment.name
    return place / setup.label if setup.label != experiment.runs[0] else place


def write_outcome(experiment: Experiment, outcome: Outcome, setup: Setup, folder: Path) -> bytes:
    """Writes result.json, a CSV file and the figure; returns the figure as SVG. Raises BadInput."""
    place = outcome_folder(experiment, setup, folder)
    data = {
        "experiment": experiment.name,
        "label": setup.label,
        "origin": setup.origin,
        "costs": setup.costs,
        "quick": setup.is_quick,
        "rows": outcome.rows,
        "series": outcome.series,
        "verdicts": [verdict.as_json() for verdict in outcome.verdicts],
    }
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, list(outcome.rows[0]))
    writer.writeheader()
    writer.writerows(outcome.rows)
    write_whole(place / "result.json", json.dumps(data, indent=1) + "\n", _FIX)
    write_whole(place / f"{experiment.name}.csv", table.getvalue(), _FIX)
    drawn: dict[str, bytes] = {}
    figure = outcome.draw()
    for suffix in ("png", "svg"):
        image = io.BytesIO()
        figure.savefig(image, format=suffix, dpi=120)
        drawn[suffix] = image.getvalue()
        write_whole(place / f"{experiment.figure}.{suffix}", drawn[suffix], _FIX)
    return drawn["svg"]
