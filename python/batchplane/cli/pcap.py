# SPDX-License-Identifier: BSD-3-Clause
"""pcap.py - `batchplane pcap`: generates captures, describes them, splits them into routes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors, out
from ..base.problems import BadInput, Problem
from ..base.units import parse_duration_ns, parse_scaled

pcap = typer.Typer(
    help="Captures: generate one like a backbone link's, describe any, split one into routes.",
    no_args_is_help=True,
)
app = typer.Typer()
app.add_typer(pcap, name="pcap")
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text")]
FileOut = Annotated[Path, typer.Argument(metavar="FILE.pcap")]


def _number(text: str, key: str) -> float:
    value = parse_scaled(text)
    if value is None:
        raise BadInput(
            Problem(f"'{text}' is not a number", "command line", key, "such as 500k, 2M")
        )
    return value


def _seconds(text: str, key: str) -> float:
    ns = parse_duration_ns(text)
    if ns is None:
        fix = "with a unit: 5s, 400ms"
        raise BadInput(Problem(f"'{text}' is not a duration", "command line", key, fix))
    return ns / 1e9


@pcap.command()
def make(
    file: FileOut,
    packets: Annotated[
        str, typer.Option("--packets", "-n", help="number of packets; 130M make 10 GB")
    ] = ("1M"),
    rate: Annotated[str, typer.Option(help="packets per second")] = "1M",
    destinations: Annotated[str, typer.Option(help="number of destination addresses")] = "65536",
    zipf: Annotated[float, typer.Option(help="Zipf exponent of the destinations' shares")] = 0.9,
    burstiness: Annotated[
        float, typer.Option(help="mean number of consecutive packets of a flow")
    ] = 1.13,
    session_bytes: Annotated[str, typer.Option(help="mean size of a session")] = "18k",
    session_time: Annotated[str, typer.Option(help="mean duration of a session")] = "5400ms",
    dst_mac: Annotated[
        str, typer.Option(metavar="MAC", help="destination MAC address of all frames")
    ] = ("02:77:0b:00:00:01"),
    seed: Annotated[int, typer.Option(help="the same seed gives the same bytes")] = 1,
) -> None:
    """Generate a capture like a backbone link's: heavy-tailed sessions, Zipf destinations."""
    # Loaded here: other commands do not need numpy.
    from rich.progress import Progress

    from ..traces.model import TraceModel
    from ..traces.write import write_trace

    seconds = _seconds(session_time, "--session-time")
    model = TraceModel(
        packets=round(_number(packets, "--packets")),
        rate_pps=_number(rate, "--rate"),
        destinations=round(_number(destinations, "--destinations")),
        zipf=zipf,
        burstiness=burstiness,
        session_mean_bytes=_number(session_bytes, "--session-bytes"),
        session_mean_s=seconds,
        session_max_s=60 / 5.4 * seconds,
        dst_mac=dst_mac,
        seed=seed,
    )
    console = errors()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(str(file), total=model.packets)
        write_trace(file, model, lambda n: bar.advance(task, n))
    console.print(
        f"{file}: {model.packets} packets, {model.packets / model.rate_pps:g} s", style="dim",
        soft_wrap=True,
    )  # fmt: skip


@pcap.command()
def stats(file: FileOut, as_json: Json = False) -> None:
    """Describe a capture: sizes, flows, destinations, bursts."""
    from ..traces.stats import trace_stats
    from ..traces.text import stats_table

    found = trace_stats(file)
    if as_json:
        print(json.dumps(found.as_json(), indent=2), flush=True)
        return
    out().print(stats_table(found))


@pcap.command()
def cut(
    file: FileOut,
    groups: Annotated[
        int, typer.Option("--groups", "-n", min=1, max=4096, help="number of groups")
    ],
    routes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write routes to this file; group i leaves by gate i"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Split a capture's destinations into groups of prefixes with similar packet counts."""
    from ..base.whole_file import write_whole
    from ..traces.cut import count_destinations, routes_text
    from ..traces.cut import cut as cut_counts
    from ..traces.text import groups_table

    found = cut_counts(count_destinations(file), groups)
    if routes is not None:
        write_whole(routes, routes_text(found, file.name))
    if len(found) < groups:
        errors().print(f"warning: the destinations fill only {len(found)} groups", style="yellow")
    if as_json:
        rows = [{"gate": i, "prefix": g.prefix, "packets": g.packets} for i, g in enumerate(found)]
        print(json.dumps(rows, indent=2), flush=True)
        return
    out().print(groups_table(found))
