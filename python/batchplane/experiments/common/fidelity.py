# SPDX-License-Identifier: BSD-3-Clause
"""fidelity.py - maintains the generated part of docs/fidelity.md: a table of verdicts for each
costs file, one for experiments that prescribe their costs, and one for measured results.

Text outside of the markers is written by hand and stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ...base.whole_file import write_whole
from .catalogue_text import command_line
from .experiment import Experiment, Outcome, Setup

Done = tuple[Experiment, Outcome, Setup]


def write_fidelity(path: Path, done: Sequence[Done]) -> None:
    """Puts the tables into the file; tables for other costs and the text around them stay."""
    groups: dict[str, list[Done]] = {}
    for entry in done:
        groups.setdefault(block_name(entry[2]), []).append(entry)
    text = path.read_text(encoding="utf-8") if path.exists() else "# Fidelity\n"
    for name, group in groups.items():
        text = with_block(text, name, block(group))
    write_whole(path, text)


def block_name(setup: Setup) -> str:
    """Measured results share a block; simulated ones have a block for each costs file, and one for
    costs that the experiments prescribe."""
    if setup.is_measured:
        return setup.label
    return f"costs {Path(setup.costs).name}" if setup.costs else "prescribed costs"


def with_block(text: str, name: str, content: str) -> str:
    """The text with the block of that name replaced, or added at its end."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    whole = f"{begin}\n{content}{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if pattern.search(text):
        return pattern.sub(lambda _: whole, text, count=1)
    return f"{text.rstrip()}\n\n{whole}\n"


def block(done: Sequence[Done]) -> str:
    """Verdicts of experiments with the same setup, as Markdown."""
    setup = done[0][2]
    origin = setup.origin
    if setup.costs and not setup.is_measured:
        origin = f"simulated; costs: `{Path(setup.costs).name}`"
    lines = [
        f"{origin[0].upper()}{origin[1:]}; made by "
        f"`{command_line([e.name for e, _, _ in done], setup)}`.",
        "",
        "| experiment | claim | paper | ours | verdict | why |",
        "|---|---|---|---|---|---|",
    ]
    for experiment, outcome, _ in done:
        for v in outcome.verdicts:
            cells = (experiment.name, v.claim, v.paper, v.ours, f"**{v.verdict}**", v.reason)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
