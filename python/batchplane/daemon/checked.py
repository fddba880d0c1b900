# SPDX-License-Identifier: BSD-3-Clause
"""checked.py - loads a pipeline and checks it with this machine's daemon program."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..lang.canonical import Document
from ..lang.check import check_all, raise_errors
from ..lang.kinds import load_kinds
from ..lang.load import load_pipeline, parse_overrides
from .process import find_program


def load_checked(name: str, overrides: Sequence[str], errors: Console) -> Document:
    """Loads a pipeline and prints warnings. Raises BadInput with every error."""
    program = find_program()
    kinds = load_kinds(program)
    document = load_pipeline(name, parse_overrides(overrides), kinds)
    problems, _ = check_all(document, program)
    raise_errors(problems)
    for problem in problems:
        errors.print(Text.assemble(("warning: ", "yellow"), problem.line()), soft_wrap=True)
    return document
