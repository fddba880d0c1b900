# SPDX-License-Identifier: BSD-3-Clause
"""device.py - `pspat_io` into a kernel's device: the daemon sends on one end of a veth pair."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from ...demo.stage import started
from . import kernel

SINK = "sends over veth"
DISPATCHERS = (0, 1)  # one thread sends to a port

_PIPELINE = """
name: pspat_io
engine: {{batch_pkts: {batch}}}
workers: {workers}
ports:
  device: {{kind: af_packet, interface: load0}}
modules:
  client: {{kind: source, size_bytes: 64, worker: schedule, flows: [{{count: 32, src_port: 1}}]}}
  link: {{kind: egress, discipline: qfq, flow_by: hash, hash_flows: 32, worker: schedule}}
  dispatcher: {{kind: queue, backpressure: true, worker: {sender}}}
  out: {{kind: port_out, port: device, when_full: wait}}
connect:
  - client -> link
  - {way}
"""


def pipeline(dispatchers: int, batch_pkts: int) -> str:
    """QFQ with 32 flows; with a dispatcher another worker sends, on another core."""
    cores = sorted(os.sched_getaffinity(0))
    workers = f"[{{name: schedule, core: {cores[-1]}}}"
    text = _PIPELINE
    if dispatchers:
        workers += f", {{name: send, core: {cores[0]}}}"
    else:
        text = "\n".join(line for line in text.splitlines() if "dispatcher:" not in line) + "\n"
    way = "link -> dispatcher -> out" if dispatchers else "link -> out"
    return text.format(batch=batch_pkts, workers=workers + "]", sender="send", way=way)


def measure(
    trials: int, run_ms: int, batches: tuple[int, ...]
) -> dict[tuple[str, int, int], list[float]]:
    """Millions of packets a second that the device took, by sink, dispatchers and batch; all take
    turns. Needs what kernel.missing() asks for."""
    found: dict[tuple[str, int, int], list[float]] = {}
    with kernel.veth_pair() as space, tempfile.TemporaryDirectory(prefix="bpd") as name:
        folder = Path(name)
        for _ in range(trials):
            for dispatchers in DISPATCHERS:
                for batch in batches:
                    file = folder / "pspat_io.yaml"
                    file.write_text(pipeline(dispatchers, batch), encoding="utf-8")
                    with started(space, folder, str(file)):
                        before, begin_s = kernel.sent_pkts(space), time.monotonic()
                        time.sleep(run_ms / 1e3)
                        sent, end_s = kernel.sent_pkts(space), time.monotonic()
                    rate = (sent - before) / (end_s - begin_s) / 1e6
                    found.setdefault((SINK, dispatchers, batch), []).append(rate)
    return found
