# SPDX-License-Identifier: BSD-3-Clause
"""fidelity.py - keeps the generated part of docs/fidelity.md: one table of verdicts for each costs.

What stands outside of the markers is written by hand and stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..problems import RunFailed
from .catalogue_text import command_line
from .experiment import Experiment, Outcome, Setup


def write_fidelity(path: Path, done: Sequence[tuple[Experiment, Outcome]], setup: Setup) -> None:
    """Puts the tables into the file; other costs' tables and the text around stay."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else "# Fidelity\n"
        text = with_block(text, Path(setup.costs).name, block(done, setup))
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFailed(f"{path} cannot be written: {error.strerror or error}") from error


def with_block(text: str, name: str, content: str) -> str:
    """The text with the block of that name replaced, or added at its end."""
    begin, end = f"<!-- begin costs {name} -->", f"<!-- end costs {name} -->"
    whole = f"{begin}\n{content}{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if pattern.search(text):
        return pattern.sub(lambda _: whole, text, count=1)
    return f"{text.rstrip()}\n\n{whole}\n"


def block(done: Sequence[tuple[Experiment, Outcome]], setup: Setup) -> str:
    """Verdicts of all experiments that were run, as Markdown."""
    lines = [
        f"Simulated; costs: `{Path(setup.costs).name}`; made by "
        f"`{command_line([e.name for e, _ in done], setup)}`.",
        "",
        "| experiment | claim | paper | ours | verdict | why |",
        "|---|---|---|---|---|---|",
    ]
    for experiment, outcome in done:
        for v in outcome.verdicts:
            cells = (experiment.name, v.claim, v.paper, v.ours, f"**{v.verdict}**", v.reason)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
