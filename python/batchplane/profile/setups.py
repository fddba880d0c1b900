# SPDX-License-Identifier: BSD-3-Clause
"""setups.py - small pipelines in which each module kind is measured when none is given.

They stand beside the modules as x_profile.yaml, and are found by that name. In them the module that
is called as its kind is measured; others only help. A line `# without KIND: WHY` says which kind of
the folder has none. Tables are as large as in the papers' own profiles where these say it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem
from ..lang.load import load_pipeline

_FILES = "**/*_profile.yaml"
_WITHOUT = re.compile(r"^# without (\w+): (.+)$", re.MULTILINE)


def folder() -> Path | None:
    """Of the files: src/ of this tree, or the copy that was installed; None when there is none."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[3] / "src", here.parents[1] / "setups"):
        if any(candidate.glob(_FILES)):
            return candidate
    return None


@lru_cache(maxsize=1)
def files() -> tuple[Path, ...]:
    """All set-ups: those of several families first, then each family's own, by name."""
    found = folder()
    if found is None:
        return ()
    return tuple(sorted(found.glob(_FILES), key=lambda path: (len(path.parts), path)))


def measured_in(pipeline: Mapping[str, Any]) -> list[str]:
    """The modules of a set-up that are not there for the others."""
    return [name for name, module in pipeline["modules"].items() if name == module["kind"]]


@lru_cache(maxsize=1)
def setups() -> tuple[dict[str, Any], ...]:
    """Canonical pipelines; each kind of interest is measured in one of them."""
    pipelines = []
    taken: dict[str, Path] = {}
    for path in files():
        document = load_pipeline(str(path))
        if document.problems:
            raise BadInput(document.problems)
        pipeline = dict(document.pipeline)
        pipeline.pop("source_map", None)
        for kind in measured_in(pipeline):
            if kind in taken:
                raise BadInput(
                    Problem(
                        f"'{kind}' is measured in {taken[kind].name} already",
                        str(path),
                        f"modules.{kind}",
                        "give it another name here",
                    )
                )
            taken[kind] = path
        pipelines.append(pipeline)
    return tuple(pipelines)


@lru_cache(maxsize=1)
def kinds_without() -> dict[str, str]:
    """Kinds that are measured nowhere, and why."""
    found: dict[str, str] = {}
    for path in files():
        found.update(_WITHOUT.findall(path.read_text(encoding="utf-8")))
    return found
