# SPDX-License-Identifier: BSD-3-Clause
"""files.py - the data and figures of an outcome; what is measured lies in a folder of its own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from ..problems import RunFailed
from .experiment import Experiment, Outcome, Setup


def outcome_folder(experiment: Experiment, setup: Setup, folder: Path) -> Path:
    """Where an outcome lies: NAME, or NAME/measured where both ways exist."""
    place = folder / experiment.name
    return place / setup.label if setup.label != experiment.runs[0] else place


def write_outcome(experiment: Experiment, outcome: Outcome, setup: Setup, folder: Path) -> None:
    """result.json, a CSV file and the figure. Raises RunFailed."""
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
