# SPDX-License-Identifier: BSD-3-Clause
"""bng.py - subscribers behind a broadband gateway: one floods, the others keep their rates."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..base.plain_table import plain_table
from ..daemon.client import Client
from ..lang.load import load_pipeline
from .netns import Hosts, Namespace
from .stage import Gateway, showing, started, step, wait_for
from .traffic import Load, running, sent_by_flow, shown_ms, watch

TOOLS = ("ping", "iperf3")
SERVER = "198.51.100.9"
_SUBSCRIBERS = {"alice": 10, "bob": 20, "carol": 30, "dave": 40}  # with their flows
_FLOODER, _FLOOD_MBPS = "alice", 200
_FIFO_BYTES = 1_000_000
_CALL = "-Q 184"  # DSCP EF

_PICTURE = """\
  north: alice 100.64.0.10, bob 100.64.0.11    --+
                                                 +-- access | bng | core -- server 198.51.100.9
  south: carol 100.64.0.12, dave 100.64.0.13   --+"""


@dataclass(frozen=True)
class Service:
    """The service that a subscriber is guaranteed in one direction, and the measured result."""

    subscriber: str
    sends: str
    min_bps: int
    ceil_bps: int
    sent_bps: float
    waits_ms: list[float]

    def cells(self) -> list[str]:
        """The cells of the subscriber's row in the table."""
        promised, ceiling = (f"{bps / 1e6:.0f}" for bps in (self.min_bps, self.ceil_bps))
        measured = f"{self.sent_bps / 1e6:.1f}"
        p50, p95 = (shown_ms(self.waits_ms, p) for p in (0.5, 0.95))
        return [self.subscriber, self.sends, promised, ceiling, measured, p50, p95]


def bng(out: Console) -> None:
    """Four subscribers of two sites, in both directions; then one's own download and ping.

    Raises RunFailed if namespaces cannot be created, or if the demo fails.
    """
    with (
        showing(out, TOOLS) as folder,
        contextlib.closing(access_hosts()) as hosts,
        started(hosts.router, folder, "bng") as gateway,
    ):
        out.print(Text(_PICTURE, "bold"))
        show_at_work(out, hosts, gateway, folder, 8)


def access_hosts() -> Hosts:
    """Subscribers behind a switch on access0, and a server on core0; close() it."""
    hosts = Hosts()
    try:
        for k, name in enumerate(_SUBSCRIBERS):
            hosts.add_host(name, name, f"100.64.0.{10 + k}/24", "100.64.0.1")
        hosts.add_switch("access0", tuple(_SUBSCRIBERS))
        hosts.add_host("server", "core0", f"{SERVER}/24", "198.51.100.1")
    except BaseException:
        hosts.close()
        raise
    return hosts


def show_at_work(
    out: Console, hosts: Hosts, gateway: Gateway, folder: Path, run_s: float
) -> dict[str, list[Service]]:
    """Runs everything, each measurement for run_s; returns guarantees and results by direction."""
    found = {}
    # Neighbours must be resolved before the flood.
    for name in _SUBSCRIBERS:
        answer = partial(_answers, hosts.hosts[name])
        wait_for(answer, f"waiting for {name} to reach the server")
    with Client(folder / "bng.sock") as client:
        for direction in ("download", "upload"):
            found[direction] = _show_overload(out, hosts, client, direction, run_s)
        _show_queues(out, hosts, gateway, client, run_s)
    step(out, "packets the gateway dropped", ("batchplane", "show", "drops"))
    out.print(gateway.say("show", "drops").rstrip(), markup=False)
    return found


def loads_of(hosts: Hosts, direction: str) -> dict[str, Load]:
    """The load of each subscriber, by name."""
    return {
        name: Load(
            hosts.hosts[name],
            direction == "download",
            udp_mbps=_FLOOD_MBPS if name == _FLOODER else 0,
        )
        for name in _SUBSCRIBERS
    }


def _answers(host: Namespace) -> bool:
    told = host.run("ping", "-n", "-c", "1", "-W", "1", SERVER, is_good=False)
    return " 0% packet loss" in told


def _show_overload(
    out: Console, hosts: Hosts, client: Client, direction: str, run_s: float
) -> list[Service]:
    """All subscribers send at once; each one also pings the server."""
    is_download = direction == "download"
    title = f"{direction}: {_FLOODER} floods, the others use TCP"
    step(out, title, ("iperf3", "-c", SERVER, *(["-R"] if is_download else [])))
    tree = load_pipeline("bng").pipeline["modules"][direction]["params"]
    nodes = {node["node"]: node for node in tree["nodes"]}
    carries = {"The link": tree["rate_bps"]}
    carries |= {site: nodes[site]["ceil_bps"] for site in ("north", "south")}
    mbps = ", ".join(f"{name} {bps / 1e6:.0f}" for name, bps in carries.items())
    out.print(f"{mbps} Mbit/s; rates are those on the link, with all headers.")
    loads = loads_of(hosts, direction)
    with running(hosts.hosts["server"], SERVER, list(loads.values()), run_s / 4):
        pings = [(hosts.hosts[name], SERVER) for name in _SUBSCRIBERS]
        seen = watch(partial(sent_by_flow, client, direction), pings, run_s)
    services = [
        Service(
            name,
            f"UDP {_FLOOD_MBPS} Mbit/s" if loads[name].udp_mbps else "TCP",
            nodes[name]["min_rate_bps"],
            nodes[name]["ceil_bps"],
            seen.bps[flow] + seen.bps[flow + 1],
            waits,
        )
        for (name, flow), waits in zip(_SUBSCRIBERS.items(), seen.waits_ms, strict=True)
    ]
    table = plain_table(
        *("<subscriber", "<sends", "promised Mbit/s", "ceiling", "measured", "ping p50 ms", "p95")
    )
    for service in services:
        table.add_row(*service.cells())
    out.print(table)
    return services


def _show_queues(
    out: Console, hosts: Hosts, gateway: Gateway, client: Client, run_s: float
) -> None:
    """One subscriber's ping next to four downloads of her own, for each kind of queue."""
    name = "alice"
    flow, host = _SUBSCRIBERS[name], hosts.hosts[name]
    step(
        out,
        f"{name}'s ping beside four downloads of her own, alone on the link, by her queue",
        ("batchplane", "set", "download", "replace", f"flow={flow}", f"parent={name}", "queue=.."),
    )
    table = plain_table("<queue", "Mbit/s", "ping p50 ms", "p95", "ping as a call (EF) p50", "p95")
    for queue in ("fq_codel", "codel", "fifo"):
        words = (f"flow={flow}", f"parent={name}", f"queue={queue}", f"limit_bytes={_FIFO_BYTES}")
        gateway.say("set", "download", "replace", *words)
        pings: list[tuple[Namespace, str]] = [(host, SERVER), (host, f"{_CALL} {SERVER}")]
        with running(hosts.hosts["server"], SERVER, [Load(host, True, 4)], run_s / 4):
            seen = watch(partial(sent_by_flow, client, "download"), pings, run_s)
        rate = f"{seen.bps[flow] / 1e6:.1f}"
        waits = [shown_ms(w, p) for w in seen.waits_ms for p in (0.5, 0.95)]
        table.add_row(queue, rate, *waits)
    out.print(table)
