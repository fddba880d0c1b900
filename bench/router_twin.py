#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""router_twin.py - pipelines/router.yaml on ports of the kernel beside its simulation.

usage: bench/router_twin.py [--rounds 5] [--seconds 1] [--out FILE.json]

`batchplane profile` measures the router's modules and its ports. Then the daemon forwards between
two hosts in network namespaces what a process with a socket sends as fast as it can. The host at
the other end drops frames at once, as happens while ports are profiled. `batchplane simulate` gets
the same rate, evenly spaced, and these costs. Both tell what a packet takes of the worker's time.
Rounds take turns of `fixed(0)` and `fixed(32)`, with the profile made again in each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from case_daemon import ROOT
from case_rows import write_rows
from real_ports import cores_without, routed, routed_hosts

sys.path.insert(0, str(ROOT / "python"))

from batchplane.base.units import short_rate
from batchplane.daemon.client import Client
from batchplane.demo.netns import Hosts, missing_for_hosts
from batchplane.demo.stage import Gateway

CONTROLLERS = ("fixed(0)", "fixed(32)")
SETTLE_S = 0.5
SERVER = "10.0.2.2"
SENDER = f"""
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect(({SERVER!r}, 9))
while True:
    try:
        out.send(bytes(18))
    except OSError:
        pass
"""
TRAFFIC = """\
generators:
  - name: home
    port: lan
    rate_pps: {rate_pps}
    arrivals: constant
    flows: [{{name: lan_to_wan, flow: lan_to_wan}}]
"""
Json = dict[str, Any]


def batchplane(*words: str) -> str:
    """The output of a command."""
    line = [sys.executable, "-m", "batchplane", *words]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def worker_of(client: Client) -> tuple[float, int]:
    """The worker's busy time so far, and the packets that came in."""
    runtime = client.show("runtime")
    return runtime["workers"][0]["regimes_ns"]["busy"], runtime["balance"]["in_pkts"]


@contextlib.contextmanager
def flooded(hosts: Hosts) -> Iterator[tuple[Gateway, Client]]:
    """The router under all that one process sends."""
    words = ("--controller", CONTROLLERS[0], "--no-profile")
    with routed(hosts, "router", *words) as (gateway, client):
        hosts.hosts["home"].run("ping", "-c", "1", "-w", "5", SERVER)
        # Known by its old address, the far end takes frames for somebody else's.
        hosts.hosts["internet"].run("ip", "link", "set", "eth0", "address", "02:00:00:00:00:99")
        core = client.show("runtime")["workers"][0]["core"]
        elsewhere = ("taskset", "-c", cores_without(core))
        hosts.hosts["home"].start(*elsewhere, "python3", "-S", "-c", SENDER)
        yield gateway, client


def measured(client: Client, seconds: float) -> tuple[float, float]:
    """Packets per second, and the worker's time for one."""
    busy_ns, pkts = worker_of(client)
    start_s = time.monotonic()
    time.sleep(seconds)
    last_ns, last_pkts = worker_of(client)
    took_s = time.monotonic() - start_s
    came = max(1, last_pkts - pkts)
    return came / took_s, (last_ns - busy_ns) / came


def simulated(costs: Path, controller: str, rate_pps: float) -> float:
    """The worker's time for a packet at this rate."""
    with tempfile.TemporaryDirectory(prefix="bprt") as folder:
        traffic = Path(folder) / "traffic.yaml"
        traffic.write_text(TRAFFIC.format(rate_pps=round(rate_pps)), encoding="utf-8")
        told = json.loads(
            batchplane(
                "simulate", "router", "--traffic", str(traffic), "--costs", str(costs),
                "--controller", controller, "--duration", "200ms", "--json",
            )
        )  # fmt: skip
    return float(told["ns_per_pkt"])


def main() -> int:
    """Prints a row for each round and controller, then the medians; with --out writes them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if reason := missing_for_hosts(("ping",)):
        parser.error(reason)
    rows: list[Json] = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="bprt") as folder:
            costs = Path(folder) / "costs.json"
            batchplane("profile", "--pipeline", "router", "--out", str(costs))
            rows += compared(costs, options.seconds)
    for name in CONTROLLERS:
        ratios = [row["ratio"] for row in rows if row["controller"] == name]
        print(f"{name:10} simulated over measured: {statistics.median(ratios):.2f}")
    write_rows(options.out, rows)
    return 0


def compared(costs: Path, seconds: float) -> list[Json]:
    """A row for each controller, with these costs."""
    rows = []
    with flooded(routed_hosts()) as (gateway, client):
        for name in CONTROLLERS:
            gateway.say("set", f"controller={name}", "--name", "router")
            time.sleep(SETTLE_S)
            rate_pps, pkt_ns = measured(client, seconds)
            model_ns = simulated(costs, name, rate_pps)
            rows.append(
                {
                    "controller": name, "rate_pps": rate_pps, "measured_ns": pkt_ns,
                    "simulated_ns": model_ns, "ratio": model_ns / pkt_ns,
                }
            )  # fmt: skip
            print(
                f"{name:10} {short_rate(rate_pps):>10} {pkt_ns:6.0f} ns a packet, "
                f"simulated {model_ns:6.0f} ns ({model_ns / pkt_ns:.2f})",
                flush=True,
            )
    return rows


if __name__ == "__main__":
    sys.exit(main())
