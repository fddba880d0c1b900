# SPDX-License-Identifier: BSD-3-Clause
"""printing.py - what commands print about their result, as text or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from .actions import print_json
from .canonical import Document
from .daemon import Daemon
from .doctor import Finding
from .kinds import ModuleKind, ParamSpec
from .plain_table import plain_table
from .problems import Problem
from .report import render_trace
from .show_sessions import render_ended
from .show_tables import render_show
from .units import short_duration


def started(daemon: Daemon, as_json: bool, out: Console) -> None:
    """A daemon was started."""
    if as_json:
        print_json(daemon.as_json())
        return
    out.print(Text.assemble(("started ", "green"), (daemon.name, "bold"), f" (pid {daemon.pid})"))
    out.print(
        Text(f"watch: batchplane attach {daemon.name}   end: batchplane stop {daemon.name}", "dim")
    )


def stopped(results: Sequence[tuple[Daemon, dict[str, Any]]], as_json: bool, out: Console) -> None:
    """Daemons were stopped."""
    if as_json:
        print_json([{"name": daemon.name, "report": report} for daemon, report in results])
        return
    for daemon, report in results:
        text = Text.assemble(("stopped ", "green"), (daemon.name, "bold"))
        balance = report.get("balance")
        if balance:
            text.append(f": {balance['sent_pkts']} sent, {balance['dropped_pkts']} dropped")
            if not balance.get("is_exact", True):
                text.append("; packets do not sum up", "red")
        out.print(text)
    if not results:
        out.print("no daemon is running")


def daemons(found: Sequence[Daemon], as_json: bool, out: Console) -> None:
    """The daemons that run."""
    if as_json:
        print_json([daemon.as_json() for daemon in found])
    elif not found:
        out.print("no daemon is running")
    else:
        table = plain_table("<name", "<pipeline", "pid", "up for", "<version")
        for daemon in found:
            table.add_row(
                daemon.name,
                daemon.pipeline,
                str(daemon.pid),
                short_duration(daemon.uptime_ns),
                daemon.version,
            )
        out.print(table)


def checked(
    problems: Sequence[Problem],
    plan: dict[str, Any],
    document: Document,
    as_json: bool,
    out: Console,
) -> None:
    """The result of a check."""
    errors = [problem for problem in problems if not problem.is_warning]
    if as_json:
        print_json(
            {"ok": not errors, "errors": [problem.as_json() for problem in problems], "plan": plan}
        )
        return
    for problem in problems:
        style, word = ("yellow", "warning: ") if problem.is_warning else ("bold red", "error: ")
        out.print(Text.assemble((word, style), problem.line()), soft_wrap=True)
    pipeline = document.pipeline
    size = (
        f"{len(pipeline.get('modules', {}))} modules, {len(pipeline.get('edges', []))} edges, "
        f"{len(pipeline.get('flows', []))} flows"
    )
    if errors:
        word = "mistake" if len(errors) == 1 else "mistakes"
        out.print(Text(f"{document.file}: {len(errors)} {word}", "bold"))
        return
    out.print(Text.assemble((f"{document.file} is good", "green"), f": {size}"))
    facts = [
        f"{key.replace('_', ' ')} {value}"
        for key, value in plan.items()
        if isinstance(value, (int, str))
    ]
    if facts:
        out.print(Text(", ".join(facts), "dim"))


def module_kinds(
    kinds: Mapping[str, ModuleKind], name: str | None, as_json: bool, out: Console
) -> None:
    """All kinds, or one with everything about it."""
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
        out.print(Text("batchplane modules KIND tells parameters, gates and drops", "dim"))
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
        table = plain_table("<drops", "<meaning", "<remedy")
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
            "every module also takes: trigger (packets), age_limit (50us); inputs take worker",
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


def changed(sets: Sequence[dict[str, Any]], as_json: bool, out: Console) -> None:
    """Settings were applied."""
    if as_json:
        print_json(list(sets))
        return
    for entry in sets[:20]:
        target = next((entry[key] for key in ("module", "flow", "name") if key in entry), "")
        rest = ", ".join(
            f"{key} {value}"
            for key, value in entry.items()
            if key not in ("what", "module", "flow", "name")
        )
        rest = rest or "done"
        out.print(
            Text.assemble(("set ", "green"), f"{entry['what']} {target}: {rest}".replace(" :", ":"))
        )
    if len(sets) > 20:
        out.print(f"and {len(sets) - 20} more, all in one step")


def answered(answer: Any, as_json: bool, out: Console) -> None:
    """A module answered its own command."""
    if as_json:
        print_json(answer)
    elif answer in (None, {}, [], True):
        out.print(Text("done", "green"))
    elif isinstance(answer, dict) and answer.get("ended"):
        out.print(render_ended(answer["ended"]))
    else:
        out.print(render_show("tables", answer))


def difference(change: dict[str, Any], out: Console) -> None:
    """What apply would change."""
    styles = (("added", "+", "green"), ("removed", "-", "red"), ("changed", "~", "yellow"))
    for key, sign, style in styles:
        for entry in change.get(key, []):
            out.print(
                Text(
                    f"{sign} {entry if isinstance(entry, str) else entry.get('name', entry)}", style
                )
            )
    out.print(Text(f"{len(change.get('kept', []))} kept with their state", "dim"))


def applied(answer: dict[str, Any], is_dry_run: bool, as_json: bool, out: Console) -> None:
    """The result of apply."""
    if as_json:
        print_json(answer)
    elif is_dry_run:
        out.print("nothing was changed (--dry-run)")
    else:
        out.print(Text("applied", "green") if answer.get("applied") else "nothing to change")


def traced(packets: list[dict[str, Any]], as_json: bool, out: Console) -> None:
    """The ways of traced packets."""
    if as_json:
        print_json({"packets": packets})
    else:
        out.print(render_trace(packets))


def examined(findings: Sequence[Finding], as_json: bool, out: Console) -> None:
    """What doctor found."""
    if as_json:
        print_json([finding.as_json() for finding in findings])
        return
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        word, style = ("ok  ", "green") if finding.is_ok else ("warn", "yellow")
        out.print(
            Text.assemble(
                (word, style), "  ", (f"{finding.topic:<{width}}", "bold"), f"  {finding.message}"
            ),
            soft_wrap=True,
        )
        if not finding.is_ok:
            out.print(Text(f"{'':<{width + 8}}{finding.remedy}", "cyan"), soft_wrap=True)
    warnings = sum(not finding.is_ok for finding in findings)
    out.print(
        Text(
            "everything is as it should be"
            if not warnings
            else f"{warnings} of {len(findings)} could be better",
            "dim",
        )
    )
