# SPDX-License-Identifier: BSD-3-Clause
"""`optimal` where another controller has collected full batches before it, and the load is far from
saturation: it must not matter, whether the SLO of a flow can be kept or not."""

from __future__ import annotations

import pytest
from built import needs_extension
from conftest import load

from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare

PERIOD_NS = 10_000_000
BEFORE, AFTER = 3, 5  # periods
TEXT = """\
name: two
engine: {{idle: hold}}
ports: {{link: {{kind: ring, size_pkts: 512}}}}
generators:
  - {{name: load, port: link, rate_pps: {pps}, arrivals: poisson, flows: [{{name: x, protocol: tcp, flow: tcp}}, {{name: y, flow: udp}}]}}
modules:
  in: {{kind: port_in, port: link}}
  split: {{kind: exact_match, fields: [{{offset: 23, size_bytes: 1}}], rules: [{{values: [6], gate: 0}}], default_gate: 1}}
  a: {{kind: ipv4_check}}
  b: {{kind: ipv4_check}}
  out: {{kind: sink}}
connect: [in -> split, "split:0 -> a", "split:1 -> b", a -> out, b -> out]
flows:
  - {{name: tcp, path: [in, split, a, out], delay_slo: {slo}}}
  - {{name: udp, path: [in, split, b, out], delay_slo: 1ms}}
"""
COSTS = {"in": (20, 10), "split": (20, 10), "a": (300, 20), "b": (300, 20), "out": (20, 5)}


def delay_ns(pps: int, slo: str, before: str) -> int:
    """The p95 of the flow with the short SLO, some periods after `before` decided."""
    costs = {
        name: {"cost_per_batch_ns": batch_ns, "cost_per_pkt_ns": pkt_ns}
        for name, (batch_ns, pkt_ns) in COSTS.items()
    }
    native = make_simulation(prepare(load(TEXT.format(pps=pps, slo=slo)), costs=costs).spec)
    delay = 0
    for number in range(BEFORE + AFTER):
        if number in (0, BEFORE):
            native.set_controller("optimal" if number else before, {})
        native.run_until((number + 1) * PERIOD_NS)
        delay = int(native.step()[0]["flows"]["delay_ns"][0])
    return delay


@needs_extension
@pytest.mark.parametrize("slo", ["400ns", "2us"])
@pytest.mark.parametrize("pps", [500_000, 1_500_000])
def test_full_batches_of_before_do_not_stay(pps: int, slo: str) -> None:
    assert delay_ns(pps, slo, "max") <= 1.1 * delay_ns(pps, slo, "null")
