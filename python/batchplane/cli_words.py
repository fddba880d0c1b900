# SPDX-License-Identifier: BSD-3-Clause
"""cli_words.py - words that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from .actions import completions

PipelineArg = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        autocompletion=completions("pipelines"),
        help="a file, or a name in pipelines/",
    ),
]
