# SPDX-License-Identifier: BSD-3-Clause
"""egress.py - the arguments of `batchplane egress`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors
from ..base.problems import BadInput, Problem, suggestion
from .words import parse_link_rate

app = typer.Typer()


@app.command()
def egress(
    flows_file: Annotated[
        Path, typer.Argument(metavar="FLOWS.csv", help="flow,weight,lmax_bytes[,limit_pkts]")
    ],
    arrivals_file: Annotated[
        Path, typer.Argument(metavar="ARRIVALS.csv", help="ns,flow,bytes; sorted by time")
    ],
    discipline: Annotated[
        str, typer.Option(help="packet scheduler: fifo, prio, drr, wf2q_plus, qfq, qfq_plus")
    ],
    rate: Annotated[str, typer.Option(help="link rate in bit/s, such as 1G or 250M")],
    out: Annotated[
        Path, typer.Option(metavar="DEPARTURES.csv", help="release_ns,flow,bytes; by release")
    ],
    overhead_bytes: Annotated[
        int, typer.Option(min=0, max=1000, help="bytes on the link besides each packet")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="a summary as JSON")] = False,
) -> None:
    """Play a schedule of arrivals through a packet scheduler and a link, in virtual time.

    With `prio`, a flow's weight is its level: 64 goes first.
    """
    # Loaded here: other commands do not need the extension.
    from ..egress.replay import (
        disciplines,
        read_arrivals,
        read_flows,
        replay,
        write_departures,
    )

    known = disciplines()
    if discipline not in known:
        fix = suggestion(discipline, known)
        raise BadInput(
            Problem(f"unknown discipline '{discipline}'", "command line", "--discipline", fix)
        )
    rate_bps = parse_link_rate(rate, "--rate")
    flows = read_flows(flows_file)
    arrivals = read_arrivals(arrivals_file, flows)
    result = replay(discipline, flows, arrivals, rate_bps, overhead_bytes)
    write_departures(out, flows, result)
    summary = {
        "arrivals_pkts": len(arrivals.ns),
        "departures_pkts": len(result.release_ns),
        "refused_pkts": len(result.refused),
        "last_release_ns": result.release_ns[-1] if result.release_ns else None,
    }
    if as_json:
        print(json.dumps(summary, indent=2), flush=True)
        return
    refused = f", {len(result.refused)} refused" if result.refused else ""
    errors().print(f"{out}: {len(result.release_ns)} packets{refused}", style="dim", soft_wrap=True)
