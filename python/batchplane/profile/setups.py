# SPDX-License-Identifier: BSD-3-Clause
"""setups.py - small pipelines for measuring module kinds without a pipeline of your own.

They are next to the modules as x_profile.yaml, and are found by that name. A module whose name is
its kind is measured; the others only help. A line `# without KIND: WHY` says that the folder's KIND
has no setup. Tables are as large as in the papers' own profiles if these say it.
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
    """The folder of the files: src/ of this tree, or the installed copy; None if there is none."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[3] / "src", here.parents[1] / "setups"):
        if any(candidate.glob(_FILES)):
            return candidate
    return None


@lru_cache(maxsize=1)
def files() -> tuple[Path, ...]:
    """All setups: first those that cover several families, then each family's own, by name."""
    found = folder()
    if found is None:
        return ()
    return tuple(sorted(found.glob(_FILES), key=lambda path: (len(path.parts), path)))


def measured_in(pipeline: Mapping[str, Any]) -> list[str]:
    """The modules that a setup measures."""
    return [name for name, module in pipeline["modules"].items() if name == module["kind"]]


@lru_cache(maxsize=1)
def setups() -> tuple[dict[str, Any], ...]:
    """Canonical pipelines, each measuring different kinds."""
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
    """Kinds that no setup measures, and why."""
    found: dict[str, str] = {}
    for path in files():
        found.update(_WITHOUT.findall(path.read_text(encoding="utf-8")))
    return found
