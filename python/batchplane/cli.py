# SPDX-License-Identifier: BSD-3-Clause
"""cli.py - the `batchplane` command: each command parses its words and calls one action.

Exit codes: 0 good, 1 failed while running, 2 bad input.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from . import (
    actions,
    cli_compare,
    cli_experiment,
    cli_pcap,
    cli_plan,
    cli_simulate,
    printing,
)
from .actions import RunOptions, ShowOptions, completions
from .cli_words import PipelineArg
from .consoles import errors as _errors
from .consoles import out as _out
from .control import ControlOptions
from .daemon import StartOptions, find_daemon, find_program, list_daemons, stop_daemon
from .demo import DEMOS
from .doctor import examine
from .kinds import load_kinds
from .live import WatchOptions
from .problems import BadInput, BatchplaneError, Problem, suggestion
from .profile_action import ProfileRequest
from .profile_action import profile as run_profile
from .schema import editor_schema
from .session_schema import SchemaOf, session_schema
from .settings import FORMS
from .show_control import render_explain
from .units import parse_duration_ns

app = typer.Typer(
    name="batchplane",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run packet pipelines, watch them and change them while traffic flows.",
    epilog="Exit codes: 0 good, 1 failed while running, 2 bad input. --debug shows stack traces.",
)

Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="the pipeline's params, such as nexthops=64"),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        "-n",
        autocompletion=completions("daemons"),
        help="which daemon; not needed when one runs",
    ),
]
NewName = Annotated[
    str | None, typer.Option("--name", "-n", help="the daemon's name (default: the pipeline's)")
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
    int | None, typer.Option("--memory-mb", min=16, help="packet memory (default: computed)")
]
Duration = Annotated[
    float | None,
    typer.Option("--duration", "-d", min=0.1, metavar="SECONDS", help="default: until Ctrl-C"),
]
Interval = Annotated[
    float, typer.Option("--interval", "-i", min=0.05, metavar="SECONDS", help="between updates")
]


ControllerName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="who sets triggers: optimal, full, max, null, fixed(k), FILE.py, ..."
    ),
]
ControlPeriod = Annotated[
    str | None, typer.Option("--period", metavar="TIME", help="of the controller (default 10ms)")
]
Slos = Annotated[
    list[str] | None,
    typer.Option("--slo", metavar="FLOW=TIME", help="a promised delay; patterns: '*=80us'"),
]
ControlCosts = Annotated[
    str | None,
    typer.Option(
        "--costs", metavar="FILE", help="a profile for the controller (default: the kept)"
    ),
]

NoProfile = Annotated[
    bool,
    typer.Option("--no-profile", help="no measuring at the start: built-in costs do"),
]


@app.command()
def run(
    pipeline: PipelineArg,
    params: Overrides = None,
    duration: Duration = None,
    sets: Sets = None,
    name: NewName = None,
    cores: Cores = None,
    memory_mb: Memory = None,
    controller: ControllerName = None,
    period: ControlPeriod = None,
    slos: Slos = None,
    costs: ControlCosts = None,
    is_unprofiled: NoProfile = False,
    interval: Interval = 1.0,
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="events over time: docs/scenarios.md")
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS", help="simulate the same beside it, with costs of a file or `prior`"
        ),
    ] = None,
    as_json: Json = False,
    is_quiet: Annotated[bool, typer.Option("--quiet", "-q", help="only the final report")] = False,
) -> None:
    """Run a pipeline, show it live, and report at the end; leaves nothing running."""
    options = RunOptions(
        StartOptions(name, cores, memory_mb),
        WatchOptions(duration, interval, is_quiet or as_json),
        tuple(sets or ()),
        as_json,
        scenario,
        ControlOptions(controller, period, tuple(slos or ()), costs, not is_unprofiled),
        simulate,
    )
    code = actions.run_pipeline(pipeline, params or [], options, _out(), _errors())
    raise typer.Exit(code)


app.command("compare", epilog=cli_compare.EPILOG)(cli_compare.compare_command)
app.command("simulate", epilog=cli_simulate.EPILOG)(cli_simulate.simulate_command)
app.command("plan", epilog=cli_plan.EPILOG)(cli_plan.plan_command)
app.command("experiment", epilog=cli_experiment.EPILOG)(cli_experiment.experiment_command)
app.add_typer(cli_pcap.app, name="pcap")


@app.command()
def start(
    pipeline: PipelineArg,
    params: Overrides = None,
    sets: Sets = None,
    name: NewName = None,
    cores: Cores = None,
    memory_mb: Memory = None,
    controller: ControllerName = None,
    period: ControlPeriod = None,
    slos: Slos = None,
    costs: ControlCosts = None,
    is_unprofiled: NoProfile = False,
    as_json: Json = False,
) -> None:
    """Start a pipeline in the background; `attach` watches it, `stop` ends it."""
    options = RunOptions(
        StartOptions(name, cores, memory_mb),
        sets=tuple(sets or ()),
        control=ControlOptions(controller, period, tuple(slos or ()), costs, not is_unprofiled),
    )
    daemon = actions.start_pipeline(pipeline, params or [], options, _errors())
    printing.started(daemon, as_json, _out())


@app.command()
def stop(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completions("daemons"), help="which daemon; not needed when one runs"
        ),
    ] = None,
    is_all: Annotated[bool, typer.Option("--all", help="every daemon of this user")] = False,
    as_json: Json = False,
) -> None:
    """Stop a daemon; tells whether every packet is accounted for."""
    daemons = list_daemons() if is_all else [find_daemon(name)]
    printing.stopped([(daemon, stop_daemon(daemon)) for daemon in daemons], as_json, _out())


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the daemons that run."""
    printing.daemons(list_daemons(), as_json, _out())


@app.command()
def check(pipeline: PipelineArg, params: Overrides = None, as_json: Json = False) -> None:
    """Find every mistake in a pipeline at once, without running it."""
    problems, plan, document = actions.check_pipeline(pipeline, params or [])
    printing.checked(problems, plan, document, as_json, _out())
    if any(not problem.is_warning for problem in problems):
        raise typer.Exit(2)


@app.command()
def modules(
    kind: Annotated[
        str | None,
        typer.Argument(autocompletion=completions("modules"), help="a kind: all about it"),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the kinds of modules, or describe one: parameters, gates, drops."""
    kinds = load_kinds(find_program()).modules
    if kind is not None and kind not in kinds:
        raise BadInput(Problem(f"there is no module kind '{kind}'", fix=suggestion(kind, kinds)))
    printing.module_kinds(kinds, kind, as_json, _out())


@app.command()
def schema(
    what: Annotated[SchemaOf, typer.Argument(help="pipeline files, or lines of session files")] = (
        SchemaOf.PIPELINE
    ),
) -> None:
    """Print the JSON schema of pipeline files, for editors; or that of mobile users' sessions."""
    if what is SchemaOf.SESSIONS:
        actions.print_json(session_schema())
        return
    actions.print_json(editor_schema(load_kinds(find_program())))


@app.command()
def show(
    what: Annotated[
        str,
        typer.Argument(
            autocompletion=completions("show"),
            help="runtime, buffers, flows, drops, ports, tables, nat, sessions, graph, "
            "generators, slo, control, all",
        ),
    ] = "runtime",
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODULE | PORT | KEY=VALUE...]",
            help="a module (tables), a port (ports), for nat: protocol, state, inside, outside, "
            "remote, limit; for sessions: seid, ue, limit",
        ),
    ] = None,
    name: Name = None,
    as_json: Json = False,
    is_dot: Annotated[bool, typer.Option("--dot", help="graph only: for Graphviz")] = False,
    is_watched: Annotated[
        bool, typer.Option("--watch", "-w", help="again and again until Ctrl-C")
    ] = False,
    interval: Interval = 1.0,
) -> None:
    """Show exact counts of a running daemon."""
    if is_dot and what != "graph":
        raise BadInput(
            Problem("--dot is for the graph", "command line", "show", "show graph --dot")
        )
    options = ShowOptions(
        what, tuple(items or ()), as_json, is_dot, interval if is_watched else None
    )
    actions.show_running(find_daemon(name), options, _out())


@app.command("set", epilog=f"Settings, all in one step:\n\n{FORMS.replace(chr(10), chr(10) * 2)}")
def set_command(
    words: Annotated[list[str], typer.Argument(metavar="SETTING... | MODULE VERB [KEY=VALUE]...")],
    name: Name = None,
    as_json: Json = False,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="a whole table for VERB")
    ] = None,
) -> None:
    """Change triggers, age limits, promises, rates and tables while traffic flows."""
    daemon = find_daemon(name)
    if len(words) == 3 and words[0] == "slo" and "=" not in "".join(words):
        words = [f"{words[1]}.slo={words[2]}"]
    if "=" in words[0]:
        printing.changed(actions.change(daemon, words), as_json, _out())
        return
    if len(words) < 2 or "=" in words[1]:
        raise BadInput(
            Problem(
                f"'{words[0]}' is no setting",
                "command line",
                "set",
                f"{words[0]}.trigger=8, or {words[0]} add KEY=VALUE",
            )
        )
    printing.answered(
        actions.edit_module(daemon, words[0], words[1], words[2:], file), as_json, _out()
    )


@app.command()
def explain(
    what: Annotated[
        str | None, typer.Argument(metavar="[FLOW | MODULE]", help="default: all")
    ] = None,
    name: Name = None,
    as_json: Json = False,
) -> None:
    """Tell why each trigger is what it is, and where the delay of each flow goes."""
    answer = actions.explain(find_daemon(name), what)
    if as_json:
        actions.print_json(answer)
    else:
        _out().print(render_explain(answer))


@app.command()
def control(
    controller: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:NAME]", help="a class with step(period), or what makes one"
        ),
    ],
    name: Name = None,
    period: ControlPeriod = None,
    limit: Annotated[str, typer.Option(metavar="TIME", help="that a step may take")] = "1s",
    costs: ControlCosts = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="controller.SETTING=VALUE", help="further settings"),
    ] = None,
) -> None:
    """Decide for a running daemon with a controller of your own, until Ctrl-C."""
    # Loaded here: other commands do without numpy.
    from .control_daemon import ControlRequest
    from .control_daemon import control as decide

    limit_ns = parse_duration_ns(limit)
    if not limit_ns or limit_ns < 1_000_000:
        raise BadInput(Problem(f"'{limit}' is no time limit", "command line", "--limit", "1ms on"))
    words = (*ControlOptions(controller, period, (), costs).program_words(), *(settings or ()))
    request = ControlRequest(controller, limit_ns / 1e9, words)
    raise typer.Exit(decide(find_daemon(name), request, _errors()))


@app.command()
def apply(
    pipeline: PipelineArg,
    params: Overrides = None,
    name: Name = None,
    is_dry_run: Annotated[bool, typer.Option("--dry-run", help="only tell the difference")] = False,
    as_json: Json = False,
) -> None:
    """Change a running daemon to another pipeline: in one step, or not at all."""
    out = _out()
    answer = actions.apply_file(
        find_daemon(name),
        pipeline,
        params or [],
        is_dry_run,
        lambda difference: None if as_json else printing.difference(difference, out),
        _errors(),
    )
    printing.applied(answer, is_dry_run, as_json, out)


@app.command()
def save(
    file: Annotated[
        Path | None, typer.Argument(help="x.yaml or x.json (default: print YAML)")
    ] = None,
    name: Name = None,
) -> None:
    """Save the running pipeline, live changes included, as a file that starts it again."""
    text = actions.save_running(find_daemon(name), file)
    if file is None:
        sys.stdout.write(text)
    else:
        _out().print(f"saved to {file}")


@app.command()
def attach(
    name: Annotated[str | None, typer.Argument(autocompletion=completions("daemons"))] = None,
    duration: Duration = None,
    interval: Interval = 1.0,
) -> None:
    """Watch a running daemon live; Ctrl-C leaves it running."""
    actions.attach(find_daemon(name), WatchOptions(duration, interval), _out(), _errors())


@app.command()
def trace(
    count: Annotated[int, typer.Argument(min=1, max=10_000, help="how many packets")] = 1,
    expression: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="as for tcpdump: 'udp port 53'")
    ] = "",
    name: Name = None,
    as_json: Json = False,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="to wait for them")
    ] = 2.0,
) -> None:
    """Follow packets through the graph: path, waits in buffers, drop reason."""
    packets = actions.trace(find_daemon(name), count, expression, timeout)
    printing.traced(packets, as_json, _out())


@app.command()
def profile(
    modules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODULE...]",
            help="modules or kinds of the pipeline; without one, kinds in small set-ups",
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            "-p",
            autocompletion=completions("pipelines"),
            help="measure its modules, with its tables and traffic",
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="KEY=VALUE", help="a param of the pipeline; repeatable"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", "-o", help="write the costs there, as JSON")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="draw rate and service time: .png, .pdf, .svg")
    ] = None,
    is_quick: Annotated[
        bool, typer.Option("--quick", help="15 ms a module instead of 300: less certain")
    ] = False,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Measure what modules cost per batch and per packet, and the engine around them."""
    run_profile(
        ProfileRequest(
            tuple(modules or ()),
            pipeline,
            tuple(params or ()),
            file,
            plot,
            is_quick,
            cores,
            as_json,
        ),
        _out(),
        _errors(),
    )


@app.command()
def demo(
    what: Annotated[
        str, typer.Argument(autocompletion=completions("demos"), help="home-gateway")
    ] = "home-gateway",
) -> None:
    """Show a pipeline at work between Linux hosts in network namespaces; leaves nothing behind."""
    if what not in DEMOS:
        raise BadInput(
            Problem(
                f"there is no demonstration '{what}'",
                "command line",
                "demo",
                suggestion(what, DEMOS),
            )
        )
    DEMOS[what](_out())


@app.command()
def doctor(as_json: Json = False) -> None:
    """Look at this machine: what slows the engine, and the command that mends it."""
    printing.examined(examine(), as_json, _out())


def main() -> None:
    """Runs the command line; every expected failure is one line and an exit code."""
    is_debug = "--debug" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--debug"]
    try:
        app(prog_name="batchplane")
    except BatchplaneError as error:
        if is_debug:
            raise
        for line in error.lines():
            _errors().print(Text.assemble(("error: ", "bold red"), line), soft_wrap=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if is_debug:
            raise
        message = (
            f"{type(error).__name__}: {error} (this is a bug of batchplane; --debug shows where)"
        )
        _errors().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
