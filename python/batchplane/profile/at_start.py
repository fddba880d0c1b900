# SPDX-License-Identifier: BSD-3-Clause
"""at_start.py - the costs that a controller needs before traffic flows: the kept profile, or a new
one."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from ..base.problems import BatchplaneError
from ..costs.cache import keep_costs, kept_costs
from ..costs.doubt import SURE, error_of, judge
from ..costs.keys import groups_of
from .measure import ProfileOptions, profile_pipeline
from .surest import surest

# Enough to start with: sampled runs correct it.
_MS_PER_MODULE = 60.0
_PASSES = 2
# Controllers that ignore costs.
_BLIND = ("none", "null", "max", "fixed(")


def needs_costs(controller: str | None) -> bool:
    """Whether the controller's decisions depend on module costs."""
    return controller is not None and not controller.startswith(_BLIND)


def ensure_profile(
    pipeline: Mapping[str, Any],
    errors: Console,
    cores: str | None = None,
    env: Mapping[str, str] = os.environ,
) -> None:
    """Measures the pipeline and keeps the profile, unless a usable one is kept already. One whose
    costs do not add up to what the whole pipeline took is measured again, at the next start, too.

    A failure is reported but not fatal: built-in costs do until sampled runs correct them.
    """
    kept = kept_costs(pipeline, env)
    if kept.costs is not None and kept.error <= SURE:
        return
    why = f"the saved profile {kept.reason}" if kept.reason else "no profile yet"
    n_groups = len(groups_of(pipeline.get("modules", {})))
    _say(errors, f"{why}: profiling {n_groups} module types (skip with --no-profile)")
    start_s = time.monotonic()
    try:
        document = surest(
            lambda: _measured(pipeline, errors, cores),
            # Short measurements leave tables rough: only the whole decides.
            lambda measured: judge(measured).whole_doubt,
        )
        off = error_of(document)
        if kept.costs is None or off < kept.error:
            path = keep_costs(pipeline, document, env)
            _say(errors, f"profiled in {time.monotonic() - start_s:.1f} s, saved as {path}")
            if doubts := document.get("doubts"):
                n_more = len(doubts) - 1
                more = f", and {n_more} more: 'doubts' in that file" if n_more else ""
                _say(errors, f"in doubt: {doubts[0]}{more}")
        else:
            off = kept.error
    except (BatchplaneError, OSError) as error:
        reason = error.lines()[0] if isinstance(error, BatchplaneError) else str(error)
        instead = "built-in costs" if kept.costs is None else "the saved profile"
        _say(errors, f"profiling failed, using {instead}: {reason}", "yellow")
        return
    if off > SURE:
        _say(
            errors,
            f"costs are up to {off:.0%} off what the whole pipeline takes, as on a busy machine: "
            "sampled runs correct them, and the next start measures again",
            "yellow",
        )


def _measured(pipeline: Mapping[str, Any], errors: Console, cores: str | None) -> dict[str, Any]:
    options = ProfileOptions(_MS_PER_MODULE, _PASSES, cores)
    columns = (TextColumn("profile"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("profile")
        return profile_pipeline(
            pipeline,
            options=options,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _say(errors: Console, line: str, style: str = "dim") -> None:
    errors.print(Text(line, style), soft_wrap=True)
