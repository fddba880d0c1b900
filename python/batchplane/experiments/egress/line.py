# SPDX-License-Identifier: BSD-3-Clause
"""line.py - a subscriber 20 ms from a server, behind a line of 100 Mbit/s, between real hosts."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...base.percentile import percentile
from ...base.problems import RunFailed
from ...demo.netns import Hosts, missing_for_hosts
from ...demo.stage import started
from ...demo.traffic import Load, received_bytes, running, watch

LINE_BPS = 100_000_000
RTT_MS = 20
CONNECTIONS = 4
FIFO_BYTES = 1_000_000
_HOME, _SERVER = "100.64.0.10", "100.64.0.20"
_TREE = (
    "{kind: egress, discipline: tree, overhead_bytes: 24, min_frame_bytes: 84, "
    f"flows: [{{flow: 0, ceil_bps: {LINE_BPS}, queue: %s, limit_bytes: {FIFO_BYTES}}}]}}"
)
# The policer counts from the IP header on; the rest is Ethernet overhead.
_POLICER = (
    f"{{kind: policer, cir_bps: {LINE_BPS}, cbs_bytes: %s, ebs_bytes: 0, overhead_bytes: 38}}"
)
LINES = {
    "tail drop, 1 MB": _TREE % "fifo",
    "codel": _TREE % "codel",
    "fq_codel": _TREE % "fq_codel",
    "policed, burst of 5 ms": _POLICER % (LINE_BPS // 8 * 5 // 1000),
    "policed, burst of 20 ms": _POLICER % (LINE_BPS // 8 * RTT_MS // 1000),
}
# Half of the round-trip time in each direction, as some kernels cannot delay packets.
_FAR = (
    "{kind: egress, discipline: calendar, limit_pkts: 16384, "
    f"flows: [{{flow: 0, delay_us: {RTT_MS * 500}}}]}}"
)
_PIPELINE = f"""
name: line
ports:
  access: {{kind: af_packet, interface: access0}}
  core: {{kind: af_packet, interface: core0}}
modules:
  in_core: {{kind: port_in, port: core}}
  far: {_FAR}
  line: %s
  out_access: {{kind: port_out, port: access, when_full: wait}}
  in_access: {{kind: port_in, port: access}}
  back: {_FAR}
  out_core: {{kind: port_out, port: core, when_full: wait}}
connect:
  - in_core -> far -> line -> out_access
  - in_access -> back -> out_core
"""


@dataclass(frozen=True)
class Passed:
    """The pings' delay beyond an idle line, and the line's utilisation."""

    ping_p50_ms: float
    ping_p95_ms: float
    goodput: float
    waited: float  # for its core: the share of time that other programs took from the gateway


def missing() -> str | None:
    """The reason why this cannot be measured here, or None."""
    return missing_for_hosts(("ping", "iperf3"))


def measure(line: str, warm_up_s: float, run_s: float) -> Passed:
    """One of LINES with downloads over four connections, and a ping next to them."""
    with _bridge(LINES[line]) as (hosts, daemon_pid):
        home, server = hosts.hosts["home"], hosts.hosts["server"]
        count, pings = partial(received_bytes, home), [(home, _SERVER)]
        idle_ms = percentile(watch(count, pings, 1).waits_ms[0], 0.05)
        with running(server, _SERVER, [Load(home, True, CONNECTIONS)], warm_up_s):
            before_ns, began_ns = _waited_ns(daemon_pid), time.monotonic_ns()
            seen = watch(count, pings, run_s)
            waited = (_waited_ns(daemon_pid) - before_ns) / (time.monotonic_ns() - began_ns)
    if not seen.waits_ms[0]:
        raise RunFailed(f"{line}: no ping was answered")
    p50_ms, p95_ms = (percentile(seen.waits_ms[0], p) - idle_ms for p in (0.5, 0.95))
    return Passed(p50_ms, p95_ms, seen.bps[0] / LINE_BPS, waited)


def _waited_ns(pid: int) -> int:
    """How long the worker has waited for its core; it never sleeps, so no thread waits longer."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return max(int(path.read_text().split()[1]) for path in threads)


@contextlib.contextmanager
def _bridge(line: str) -> Iterator[tuple[Hosts, int]]:
    with tempfile.TemporaryDirectory(prefix="bpd") as name, contextlib.closing(Hosts()) as hosts:
        hosts.add_host("home", "access0", f"{_HOME}/24", _SERVER)
        hosts.add_host("server", "core0", f"{_SERVER}/24", _HOME)
        pipeline = Path(name) / "line.yaml"
        pipeline.write_text(_PIPELINE % line)
        with started(hosts.router, Path(name), str(pipeline)):
            yield hosts, int(json.loads((Path(name) / "line.json").read_text())["pid"])
