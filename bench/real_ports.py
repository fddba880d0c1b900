#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""real_ports.py - controllers on ports of the kernel, under iperf3 and ping.

usage: bench/real_ports.py [--slos 3] [--rounds 3] [--seconds 2] [--out FILE.json] [CASE...]

A router stands between two hosts in network namespaces; iperf3 sends through it (tcp: as much as
comes through, udp: small packets, more than it carries), and ping every 5 ms. First fixed(0) and
fixed(32) run for a moment: the SLOs lie evenly between 1.3 times the p95 of the former and 1.1
times that of the latter. At each SLO `optimal` takes turns with fixed triggers. `broken`: periods
in which more packets are late than the percentile allows. `violated` leaves out those that the
machine may have broken by holding the worker up (`held up`). What the kernel takes to send a batch
counts as that, too, so compare controllers by `broken`. `predicted` is the rate that the controller
expected over the one that was carried, at the ends of its turns. Hosts, iperf3 and ping run on the
cores that the worker leaves. `moved`: decisions a second that changed a trigger. `beside`:
processor time of the daemon's threads beside its worker, of a core: control and the daemon's own
upkeep.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import violations
from case_daemon import ROOT, terminable
from case_rows import wanted_cases, write_rows

sys.path.insert(0, str(ROOT / "python"))

from batchplane.base.units import short_duration, short_rate
from batchplane.daemon.client import Client
from batchplane.demo.demos import INTERNET, home_hosts
from batchplane.demo.netns import CommandFailed, Hosts, missing_for_hosts
from batchplane.demo.stage import Gateway, started

FIXED = ("fixed(0)", "fixed(4)", "fixed(32)")
SETTLE_S = 1.0
LOOK_S = 1.0
PING_S = 0.005
LOOK_AGAIN_S = 0.05
Json = dict[str, Any]


def routed_hosts() -> Hosts:
    """`home` and `internet` on both sides of pipelines/router.yaml."""
    hosts = Hosts()
    try:
        hosts.add_host("home", "lan0", "10.0.1.2/24", "10.0.1.1")
        hosts.add_host("internet", "wan0", "10.0.2.2/24", "10.0.2.1")
    except BaseException:
        hosts.close()
        raise
    return hosts


@dataclass(frozen=True)
class Case:
    """A pipeline between two hosts, and what iperf3 sends."""

    pipeline: str
    make_hosts: Callable[[], Hosts]
    server: str
    words: tuple[str, ...]


TCP = ("-t", "36000")
UDP = ("-u", "-b", "0", "-l", "64", "-t", "36000")
CASES = {
    "router, tcp": Case("router", routed_hosts, "10.0.2.2", TCP),
    "router, udp": Case("router", routed_hosts, "10.0.2.2", UDP),
    "home_gateway, tcp": Case("home_gateway", home_hosts, INTERNET, TCP),
    "home_gateway, udp": Case("home_gateway", home_hosts, INTERNET, UDP),
}


def round_trips_us(told: str) -> list[float]:
    """The round trips that ping printed."""
    return [float(ms) * 1e3 for ms in re.findall(r"time=([\d.]+) ms", told)]


def cores_without(core: int) -> str:
    """The cores of this process but one, for taskset; all if there is no other."""
    others = sorted(os.sched_getaffinity(0) - {core}) or [core]
    return ",".join(map(str, others))


def moves(decisions: Iterable[Json]) -> set[int]:
    """When decisions changed a trigger."""
    return {
        int(decision["now_ns"])
        for decision in decisions
        if any(change["from_pkts"] != change["to_pkts"] for change in decision["changes"])
    }


def end_daemon(state: Path) -> None:
    """Ends the daemon of this state file, if it is there. A signal for all processes of this script
    also ends the namespaces, without which `batchplane stop` reaches no daemon."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(json.loads(state.read_text())["pid"]), signal.SIGTERM)


def thread_times_s(pid: int) -> dict[str, float]:
    """The processor time that each thread of a process took so far."""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    times = {}
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            words = stat.read_text().rpartition(")")[2].split()
            times[stat.parent.name] = (int(words[11]) + int(words[12])) / ticks_per_s
    return times


def beside_worker_s(before: dict[str, float], after: dict[str, float]) -> float:
    """What all threads took but the one that took most, which is the worker."""
    took_s = [time_s - before.get(thread, 0.0) for thread, time_s in after.items()]
    return sum(took_s) - max(took_s, default=0.0)


class Bed:
    """A router under load, whose controller and SLO are changed live."""

    def __init__(self, case: Case, hosts: Hosts, gateway: Gateway, client: Client) -> None:
        self._case, self._hosts, self._gateway, self._client = case, hosts, gateway, client
        self._pid = int(client.hello()["pid"])
        core = client.show("runtime")["workers"][0]["core"]
        self._elsewhere = ("taskset", "-c", cores_without(core))

    def load(self) -> None:
        """Lets iperf3 send until the end."""
        self._hosts.hosts["internet"].start(*self._elsewhere, "iperf3", "-s")
        words = (*self._elsewhere, "iperf3", "-c", self._case.server, *self._case.words)
        for _ in range(20):  # until the server listens
            sender = self._hosts.hosts["home"].start(*words)
            with contextlib.suppress(subprocess.TimeoutExpired):
                sender.wait(0.5)
            if sender.poll() is None:
                return
        raise CommandFailed(f"{' '.join(words)}: it ends at once")

    def use(self, controller: str, slo_ns: float) -> None:
        """Changes both and lets the controller settle."""
        slo = violations.words_of_slo(slo_ns)
        self._gateway.say("set", f"controller={controller}", slo, "--name", self._case.pipeline)
        time.sleep(SETTLE_S)

    def measure(self, slo_ns: float, seconds: float) -> Json:
        """Rate, violated periods of the worst flow and round trips, for some time from now on."""
        slo = violations.words_of_slo(slo_ns)
        self._gateway.say("set", slo, "--name", self._case.pipeline)  # resets the counters
        first = self._client.show("runtime")
        threads_s = thread_times_s(self._pid)
        told, moved = self._ping(seconds)
        beside_s = beside_worker_s(threads_s, thread_times_s(self._pid))
        last, rows = self._client.show("runtime"), self._client.show("slo")
        control = self._client.show("control")
        flow = violations.worst(violations.counted(rows))
        sent = last["balance"]["sent_pkts"] - first["balance"]["sent_pkts"]
        ran_s = (last["now_ns"] - first["now_ns"]) / 1e9
        trips_us = round_trips_us(told)
        counted = [row["counted"]["p95_ns"] for row in rows if row.get("counted")]
        return {
            "rate_pps": sent / ran_s,
            "violated": flow["violated"] - flow["stalled"],
            "stalled": flow["stalled"],
            "periods": flow["periods"] - flow["stalled"],
            "p95_ns": max((p95_ns for p95_ns in counted if p95_ns), default=0.0),
            "moves_per_s": sum(now_ns > first["now_ns"] for now_ns in moved) / ran_s,
            "beside_ratio": beside_s / ran_s,
            # Of the highest rate that part that comes.
            "predicted_ratio": control["predicted_pps"]
            * control["predicted_load"]
            / max(sent / ran_s, 1),
            "ping_p95_us": statistics.quantiles(trips_us, n=20)[-1] if len(trips_us) > 1 else 0.0,
            "answered_ratio": len(trips_us) / round(seconds / PING_S),
        }

    def _ping(self, seconds: float) -> tuple[str, set[int]]:
        """Pings for some time; what ping told, and when triggers moved meanwhile."""
        words = [*self._elsewhere, "ping", "-n", "-i", str(PING_S)]
        words += ["-c", str(round(seconds / PING_S)), "-w", str(round(2 * seconds) + 1)]
        with tempfile.TemporaryFile("w+") as out:
            ping = self._hosts.hosts["home"].start(*words, self._case.server, stdout=out)
            moved: set[int] = set()
            while ping.poll() is None:  # only the last few decisions are kept
                moved |= moves(self._client.show("control")["decisions"])
                time.sleep(LOOK_AGAIN_S)
            out.seek(0)
            return out.read(), moved

    def p95_ns(self, controller: str) -> float:
        """The p95 of a controller: delays are counted in parts of the SLO, exact only near it."""
        guess_ns = 200_000.0
        self.use(controller, guess_ns)
        for _ in range(2):
            guess_ns = float(self.measure(guess_ns, LOOK_S)["p95_ns"])
        return guess_ns


@contextlib.contextmanager
def routed(hosts: Hosts, pipeline: str, *words: str) -> Iterator[tuple[Gateway, Client]]:
    """A daemon between these hosts, started with these words; all of it ends with the block."""
    with terminable(), contextlib.ExitStack() as stack:
        stack.callback(hosts.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bpr")))
        stack.callback(end_daemon, folder / f"{pipeline}.json")
        gateway = stack.enter_context(started(hosts.router, folder, pipeline, *words))
        yield gateway, stack.enter_context(Client(folder / f"{pipeline}.sock", timeout_s=20))


@contextlib.contextmanager
def loaded(case: Case) -> Iterator[Bed]:
    """The case's router with iperf3 running through it."""
    hosts = case.make_hosts()
    with routed(hosts, case.pipeline, "--controller", "optimal") as (gateway, client):
        bed = Bed(case, hosts, gateway, client)
        bed.load()
        yield bed


def summed(rows: Sequence[Json]) -> Json:
    """A controller's turns at one SLO as one row: medians, and all its periods."""
    periods = sum(int(row["periods"]) for row in rows)
    stalled = sum(int(row["stalled"]) for row in rows)
    violated = sum(int(row["violated"]) for row in rows)
    keys = (
        "rate_pps", "p95_ns", "moves_per_s", "beside_ratio", "predicted_ratio", "ping_p95_us",
        "answered_ratio",
    )  # fmt: skip
    return {
        **{key: statistics.median(row[key] for row in rows) for key in keys},
        "broken_ratio": (violated + stalled) / max(periods + stalled, 1),
        "violated_ratio": violated / max(periods, 1),
        "stalled_ratio": stalled / max(periods + stalled, 1),
    }


def measure(name: str, options: argparse.Namespace) -> list[Json]:
    """All SLOs of one case."""
    found = []
    with loaded(CASES[name]) as bed:
        least, most = 1.3 * bed.p95_ns(FIXED[0]), 1.1 * bed.p95_ns(FIXED[-1])
        for i in range(options.slos):
            slo_ns = least + (most - least) * i / max(options.slos - 1, 1)
            turns: dict[str, list[Json]] = {"optimal": [], **{each: [] for each in FIXED}}
            for _ in range(options.rounds):
                for controller, rows in turns.items():
                    bed.use(controller, slo_ns)
                    rows.append(bed.measure(slo_ns, options.seconds))
            for controller, rows in turns.items():
                row = {"case": name, "slo_ns": slo_ns, "controller": controller, **summed(rows)}
                found.append(row)
                print(show(row), flush=True)
    return found


def show(row: Json) -> str:
    """The row as one line of a table."""
    is_own = row["controller"] == "optimal"
    predicted = f"{row['predicted_ratio']:.2f}" if is_own else "-"
    return (
        f"{row['case']:18} {short_duration(row['slo_ns']):>9} {row['controller']:10} "
        f"{short_rate(row['rate_pps']):>10} {short_duration(row['p95_ns']):>9} "
        f"{row['broken_ratio']:8.2%} {row['violated_ratio']:9.2%} {row['stalled_ratio']:8.1%} "
        f"{row['moves_per_s']:6.1f} "
        f"{row['beside_ratio']:6.1%} {predicted:>9} {row['ping_p95_us']:7.0f} us "
        f"{row['answered_ratio']:8.1%}"
    )


def main() -> int:
    """Prints the table; with --out writes it."""
    parser = argparse.ArgumentParser(description="controllers on ports of the kernel")
    parser.add_argument("cases", nargs="*", help="names as in the table; all when none is given")
    parser.add_argument("--slos", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = wanted_cases(parser, options.cases, CASES)
    if reason := missing_for_hosts(("iperf3", "ping")):
        parser.error(reason)
    print(
        f"{'case':18} {'SLO':>9} {'controller':10} {'rate':>10} {'p95':>9} {'broken':>8} "
        f"{'violated':>9} {'held up':>8} {'moved':>6} {'beside':>6} {'predicted':>9} "
        f"{'ping p95':>10} {'answered':>8}"
    )
    rows: list[Json] = []
    for case in cases:
        rows += measure(case, options)
        write_rows(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
