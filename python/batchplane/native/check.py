# SPDX-License-Identifier: BSD-3-Clause
"""check.py - checks a pipeline's rules without a daemon, in microseconds, before a simulation."""

from __future__ import annotations

from ..base.problems import Problem
from ..lang.canonical import Document
from ..lang.check import in_file_order
from ..lang.kinds import Kinds
from ..lang.traffic import traffic_problems
from .loader import load_native


def check_document(document: Document, kinds: Kinds) -> list[Problem]:
    """All problems in file order, except those that only constructing the modules can find."""
    problems = [*document.problems, *traffic_problems(document)]
    if not document.broken_modules:
        pipeline = {key: value for key, value in document.pipeline.items() if key != "source_map"}
        errors, warnings = load_native().check_pipeline(pipeline, kinds.schema)
        for found, is_warning in ((errors, False), (warnings, True)):
            problems += [document.problem(key, words, fix, is_warning) for key, words, fix in found]
    return in_file_order(problems)
