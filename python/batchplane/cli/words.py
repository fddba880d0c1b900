# SPDX-License-Identifier: BSD-3-Clause
"""words.py - arguments that several commands share, and their shell completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ..base.problems import BadInput, Problem
from ..base.units import parse_scaled


def completions(kind: str) -> Callable[[str], list[str]]:
    """A completion function for names of daemons, pipelines, module kinds or things to show."""

    def complete(incomplete: str) -> list[str]:
        try:
            return [word for word in _words(kind) if word.startswith(incomplete)]
        except Exception:  # shell completion must not print errors
            return []

    return complete


def _words(kind: str) -> list[str]:
    # Loaded here: parsing a command's arguments does not need them.
    from ..daemon.process import find_program, list_daemons
    from ..demo.demos import DEMOS
    from ..lang.kinds import load_kinds
    from ..lang.load import pipeline_names
    from ..show.tables import WHAT

    if kind == "show":
        return list(WHAT)
    if kind == "demos":
        return sorted(DEMOS)
    if kind == "daemons":
        return [daemon.name for daemon in list_daemons()]
    if kind == "modules":
        return sorted(load_kinds(find_program()).modules)
    return pipeline_names()


def parse_link_rate(text: str, option: str, may_be_none: bool = False) -> int:
    """A link's rate in bit/s, such as 1G; 0 means no rate if `may_be_none`. Raises BadInput."""
    # Loaded here: most commands do not need the extension.
    from ..egress.replay import rate_range_bps

    least, most = rate_range_bps()
    rate_bps = parse_scaled(text)
    if may_be_none and rate_bps == 0:
        return 0
    if rate_bps is None or not least <= rate_bps <= most:
        fix = f"{least} to {most} bit/s, such as 1G" + ("; 0 for none" if may_be_none else "")
        raise BadInput(Problem(f"'{text}' is no rate", "command line", option, fix))
    return round(rate_bps)


PipelineArg = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        autocompletion=completions("pipelines"),
        help="a file, or a name in pipelines/",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="parameters of the pipeline, such as nexthops=64"
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        "-n",
        autocompletion=completions("daemons"),
        help="which daemon (optional if only one is running)",
    ),
]
NewName = Annotated[
    str | None,
    typer.Option("--name", "-n", help="name of the daemon (default: the pipeline's name)"),
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="SETTING",
        help="a live setting, such as ttl.trigger=8; see `set --help`",
    ),
]
Cores = Annotated[str | None, typer.Option(help="cores to use, such as 0,1; workers take the last")]
Memory = Annotated[
    int | None, typer.Option("--memory-mb", min=16, help="packet memory in MB (default: computed)")
]
Duration = Annotated[
    float | None,
    typer.Option(
        "--duration",
        "-d",
        min=0.1,
        metavar="SECONDS",
        help="how long to run (default: until Ctrl-C)",
    ),
]
Interval = Annotated[
    float,
    typer.Option("--interval", "-i", min=0.05, metavar="SECONDS", help="time between updates"),
]
ControllerName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="controller that sets the triggers: optimal, full, max, null, fixed(k), FILE.py, ...",
    ),
]
ControlPeriod = Annotated[
    str | None, typer.Option("--period", metavar="TIME", help="control period (default 10ms)")
]
Slos = Annotated[
    list[str] | None,
    typer.Option("--slo", metavar="FLOW=TIME", help="delay SLO of a flow; patterns work: '*=80us'"),
]
ControlCosts = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="FILE",
        help="module costs for the controller (default: the saved profile)",
    ),
]
NoProfile = Annotated[
    bool,
    typer.Option("--no-profile", help="skip profiling at startup and use built-in costs"),
]
