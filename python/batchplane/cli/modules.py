# SPDX-License-Identifier: BSD-3-Clause
"""modules.py - the arguments and output of `modules` and `schema`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..base.consoles import out, print_json
from ..base.plain_table import plain_table
from ..base.problems import BadInput, Problem, suggestion
from ..daemon.process import find_program
from ..lang.kinds import ModuleKind, ParamSpec, load_kinds
from ..lang.schema import editor_schema
from ..lang.session_schema import SchemaOf, session_schema
from .words import Json, completions

app = typer.Typer()


@app.command()
def modules(
    kind: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completions("modules"), help="show everything about this kind"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the module kinds, or describe one: parameters, gates, drop reasons."""
    kinds = load_kinds(find_program()).modules
    if kind is not None and kind not in kinds:
        raise BadInput(Problem(f"there is no module kind '{kind}'", fix=suggestion(kind, kinds)))
    _module_kinds(kinds, kind, as_json, out())


@app.command()
def schema(
    what: Annotated[SchemaOf, typer.Argument(help="pipeline files, or lines of session files")] = (
        SchemaOf.PIPELINE
    ),
) -> None:
    """Print the JSON schema of pipeline files (for editors) or of session files."""
    if what is SchemaOf.SESSIONS:
        print_json(session_schema())
        return
    print_json(editor_schema(load_kinds(find_program())))


def _module_kinds(
    kinds: Mapping[str, ModuleKind], name: str | None, as_json: bool, out: Console
) -> None:
    """Prints all kinds, or everything about one."""
    if as_json:
        data = {
            kind.kind: {**asdict(kind), "params": [asdict(param) for param in kind.params.values()]}
            for kind in kinds.values()
            if name in (None, kind.kind)
        }
        print_json(data[name] if name else data)
    elif name is None:
        table = plain_table("<kind", "<shape", "<what it does")
        for kind in kinds.values():
            table.add_row(kind.kind, kind.shape.replace("_", "-"), kind.help)
        out.print(table)
        out.print(
            Text("run `batchplane modules KIND` for parameters, gates and drop reasons", "dim")
        )
    else:
        _module_kind(kinds[name], out)


def _module_kind(kind: ModuleKind, out: Console) -> None:
    out.print(Text.assemble((kind.kind, "bold"), f" ({kind.shape.replace('_', '-')}): {kind.help}"))
    if kind.params:
        table = plain_table("<parameter", "<type", "<default", "<range", "<meaning")
        for param in kind.params.values():
            unit = f" [{param.unit}]" if param.unit else ""
            default = "required" if param.default is None else _default(param.default)
            table.add_row(param.name, f"{param.type}{unit}", default, _range(param), param.help)
        out.print("", table)
    if kind.gate_names:
        out.print(
            Text.assemble(
                ("\ngates ", "bold"),
                ", ".join(f"{i} = {gate}" for i, gate in enumerate(kind.gate_names)),
            )
        )
    if kind.drops:
        table = plain_table("<drop reason", "<meaning", "<remedy")
        for drop in kind.drops:
            table.add_row(
                str(drop.get("name", drop.get("reason", ""))),
                str(drop.get("meaning", "")),
                str(drop.get("remedy", "")),
            )
        out.print("", table)
    if kind.notes:
        out.print("", Text(kind.notes))
    out.print(
        "",
        Text(
            "every module also takes trigger (packets) and age_limit (50us); inputs take worker",
            "dim",
        ),
    )


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return '""' if value == "" else f"{value:g}" if isinstance(value, float) else str(value)


def _range(param: ParamSpec) -> str:
    if param.choices:
        return " | ".join(param.choices)
    low = "" if param.min <= -1e18 else f"{param.min:.10g}"
    high = "" if param.max >= 1e18 else f"{param.max:.10g}"
    return f"{low} .. {high}" if low or high else ""
