# SPDX-License-Identifier: BSD-3-Clause
"""page.py - all results of a command as one self-contained HTML file, for screen and paper.

Figures are embedded as images, so that names inside one SVG cannot clash with those of another.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from ...base.whole_file import write_whole
from .catalogue_text import command_line
from .experiment import Experiment, Outcome, Setup
from .page_facts import Made, facts_of
from .page_style import PAGE
from .verdict import DIFFERENT, Verdict

# Marks besides colour, as paper may be grey.
_MARKS = {"same": "&#10003;", "better": "&#9650;", "different": "&#9679;"}


@dataclass(frozen=True)
class Section:
    """One experiment's part of the page."""

    experiment: Experiment
    outcome: Outcome
    setup: Setup
    figure_svg: bytes


def write_page(path: Path, sections: Sequence[Section], made: Made) -> None:
    """Writes the page. Raises BadInput if it cannot be written."""
    write_whole(path, page_text(sections, facts_of(made), made.warnings), "--report FILE elsewhere")


def page_text(
    sections: Sequence[Section], facts: Iterable[tuple[str, str]], warnings: Iterable[str] = ()
) -> str:
    """The whole page."""
    verdicts = [v for each in sections for v in each.outcome.verdicts]
    held = sum(v.verdict != DIFFERENT for v in verdicts)
    return Template(PAGE).substitute(
        summary=f"{len(sections)} experiments; {held} of {len(verdicts)} claims hold",
        facts="".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts),
        warnings="".join(f'<p class="warning">{escape(line)}</p>' for line in warnings),
        commands="".join(f"<pre>{escape(line)}</pre>" for line in _commands(sections)),
        contents="".join(map(_contents_row, sections)),
        sections="".join(map(_section, sections)),
    )


def _commands(sections: Sequence[Section]) -> list[str]:
    """One command for each mode and setup, with all of its experiments."""
    by_setup: dict[Setup, list[str]] = {}
    for each in sections:
        by_setup.setdefault(each.setup, []).append(each.experiment.name)
    return [command_line(names, setup) for setup, names in by_setup.items()]


def _anchor(section: Section) -> str:
    setup = section.setup
    return "-".join((section.experiment.name, setup.label, *filter(None, [Path(setup.costs).stem])))


def _mode(section: Section) -> str:
    setup = section.setup
    return f"{setup.label}, {Path(setup.costs).stem}" if setup.costs else setup.label


def _contents_row(section: Section) -> str:
    counts = dict.fromkeys(_MARKS, 0)
    for v in section.outcome.verdicts:
        counts[v.verdict] += 1
    marks = "".join(f'<td class="number {word}">{n or ""}</td>' for word, n in counts.items())
    name = escape(section.experiment.name)
    return (
        f'<tr><td><a href="#{_anchor(section)}">{name}</a></td>'
        f"<td>{escape(section.experiment.title)}</td><td>{escape(_mode(section))}</td>"
        f"{marks}</tr>"
    )


def _section(section: Section) -> str:
    experiment, outcome, setup = section.experiment, section.outcome, section.setup
    image = base64.b64encode(section.figure_svg).decode()
    note = f"<p>{escape(experiment.note)}</p>" if experiment.note else ""
    return (
        f'<section id="{_anchor(section)}"><h2>{escape(experiment.name)} '
        f"<small>{escape(experiment.title)}</small></h2>"
        f'<p class="origin">{escape(setup.origin)} &middot; '
        f"<code>{escape(command_line([experiment.name], setup))}</code></p>{note}"
        f'<figure><img alt="{escape(experiment.title, quote=True)}" '
        f'src="data:image/svg+xml;base64,{image}"></figure>'
        f"{_verdicts(outcome.verdicts)}{_rows(outcome)}</section>"
    )


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    rows = "".join(
        f"<tr><td>{escape(v.claim)}</td><td>{escape(v.paper)}</td><td>{escape(v.ours)}</td>"
        f'<td class="{v.verdict}">{_MARKS[v.verdict]} {v.verdict}</td>'
        f"<td>{escape(v.reason)}</td></tr>"
        for v in verdicts
    )
    return (
        '<table class="verdicts"><thead><tr><th>claim</th><th>claimed</th><th>ours</th>'
        f"<th>verdict</th><th>why</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _rows(outcome: Outcome) -> str:
    """The numbers; text columns are left-aligned, as in the terminal."""
    words = [heading.startswith("<") for _, heading, _ in outcome.columns]
    heads = "".join(
        f"<th{'' if is_word else ' class=number'}>{escape(heading.lstrip('<'))}</th>"
        for (_, heading, _), is_word in zip(outcome.columns, words, strict=True)
    )
    lines = []
    for row in outcome.rows:
        cells = zip((text(row[key]) for key, _, text in outcome.columns), words, strict=True)
        lines.append(
            "<tr>"
            + "".join(
                f"<td>{escape(text)}</td>" if is_word else f'<td class="number">{escape(text)}</td>'
                for text, is_word in cells
            )
            + "</tr>"
        )
    return (
        f"<details open><summary>{len(outcome.rows)} rows</summary>"
        f'<table class="rows"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></details>"
    )
