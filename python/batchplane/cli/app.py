# SPDX-License-Identifier: BSD-3-Clause
"""app.py - the `batchplane` command: loads the module of this folder that has the command.

Exit codes: 0 good, 1 failed while running, 2 bad input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import typer
from rich.text import Text

from ..base.consoles import errors
from ..base.problems import BatchplaneError

# The commands of each module of this folder. Only the requested one is loaded: a command that
# queries a daemon then starts three times as fast.
HOMES: dict[str, tuple[str, ...]] = {
    "run": ("run", "start"),
    "compare": ("compare",),
    "simulate": ("simulate",),
    "plan": ("plan",),
    "experiment": ("experiment",),
    "pcap": ("pcap",),
    "egress": ("egress",),
    "libreqos": ("libreqos",),
    "daemons": ("list", "stop"),
    "check": ("check",),
    "modules": ("modules", "schema"),
    "show": ("show", "explain", "attach", "trace"),
    "change": ("set", "apply", "move", "save"),
    "control": ("control",),
    "profile": ("profile",),
    "machine": ("demo", "doctor"),
}


def make_app(homes: Sequence[str] = tuple(HOMES)) -> typer.Typer:
    """An app with the commands of some modules, or of all."""
    app = typer.Typer(
        name="batchplane",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Run packet pipelines, monitor them, and change them while traffic flows.",
        epilog="Exit codes: 0 success, 1 runtime failure, 2 bad input. --debug shows stack traces.",
        # Without a callback, typer takes an only command for the whole program.
        callback=lambda: None,
    )
    for home in homes:
        app.add_typer(import_module(f".{home}", __package__).app)
    return app


def homes_of(words: Sequence[str]) -> Sequence[str]:
    """The modules that a command line needs: one, or all if help or completion lists them."""
    is_completion = any(key.endswith("_COMPLETE") for key in os.environ)
    if words and not is_completion:
        for home, commands in HOMES.items():
            if words[0] in commands:
                return [home]
    return list(HOMES)


def main() -> None:
    """Runs the command line; every expected failure ends in one line and an exit code."""
    is_debug = "--debug" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--debug"]
    try:
        make_app(homes_of(sys.argv[1:]))(prog_name="batchplane")
    except BatchplaneError as error:
        if is_debug:
            raise
        for line in error.lines():
            errors().print(Text.assemble(("error: ", "bold red"), line), soft_wrap=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if is_debug:
            raise
        message = f"{type(error).__name__}: {error} (a bug in batchplane; use --debug for a trace)"
        errors().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
        sys.exit(1)
