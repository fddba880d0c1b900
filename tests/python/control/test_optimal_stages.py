# SPDX-License-Identifier: BSD-3-Clause
"""`optimal` and modules on one device that one of them overloads, that stop, or whose packets come
in a closed loop."""

from __future__ import annotations

from typing import Any

from built import needs_extension
from conftest import load

from batchplane.native.loader import NativeSimulation, make_simulation
from batchplane.sim.prepare import prepare

pytestmark = needs_extension

PERIOD_NS = 10_000_000
OWN_LIMIT_NS = 50_000
DEVICE = "{on: [card], batch_pkts: 16, max_batch_pkts: 256, age_limit: 50us, idle: hold}"
TEXT = f"""\
name: two
engine: {{idle: hold}}
ports: {{a: {{kind: ring, size_pkts: 512}}, b: {{kind: ring, size_pkts: 512}}}}
devices: {{card: {{kind: simulated, laws: {{digest: {{batch: 5us, pkt_ns: 1000}}}}}}}}
generators:
  - {{name: heavy, port: a, rate_pps: 1000, arrivals: poisson, flows: [{{name: x, flow: heavy}}]}}
  - {{name: light, port: b, rate_pps: 1000, arrivals: poisson, flows: [{{name: y, flow: light}}]}}
modules:
  in_a: {{kind: port_in, port: a}}
  in_b: {{kind: port_in, port: b}}
  h_a: {{kind: digest, device: {DEVICE}}}
  h_b: {{kind: digest, device: {DEVICE}}}
  out: {{kind: sink}}
connect: [in_a -> h_a, in_b -> h_b, h_a -> out, h_b -> out]
flows:
  - {{name: heavy, path: [in_a, h_a, out]}}
  - {{name: light, path: [in_b, h_b, out], delay_slo: 1ms}}
"""
COSTS = {
    name: {"cost_per_batch_ns": 20, "cost_per_pkt_ns": 20}
    for name in ("in_a", "in_b", "h_a", "h_b", "out")
}


def simulation(controller: str, heavy: dict[str, Any], light_pps: int) -> NativeSimulation:
    spec = prepare(load(TEXT), costs=COSTS).spec
    params = {generator["name"]: generator["params"] for generator in spec["generators"]}
    params["heavy"].update(heavy)
    params["light"]["rate_pps"] = light_pps
    native = make_simulation(spec)
    native.set_controller(controller, {})
    return native


def periods(native: NativeSimulation, n: int) -> list[dict[str, Any]]:
    began = native.now_ns // PERIOD_NS
    found = []
    for number in range(n):
        native.run_until((began + number + 1) * PERIOD_NS)
        found.append(native.step()[0])
    return found


def stage(native: NativeSimulation, name: str) -> dict[str, Any]:
    return next(row["stage"] for row in native.show("tables") if row["module"] == name)


def test_a_light_flow_is_in_time_beside_one_that_overloads_the_device() -> None:
    native = simulation("optimal", {"rate_pps": 1_200_000}, 2_000)
    for period in periods(native, 30)[3:]:
        assert period["flows"]["pkts"][1] > 0
        assert period["flows"]["delay_ns"][1] <= 2 * 1_000_000  # the card is never free


def test_what_an_overload_asked_for_does_not_stay() -> None:
    native = simulation("optimal", {"rate_pps": 1_200_000}, 2_000)
    periods(native, 5)
    native.edit({"generators": {"heavy": {"rate_pps": 20_000}}})
    periods(native, 30)
    assert stage(native, "h_a")["age_limit_ns"] <= 4 * OWN_LIMIT_NS


def test_a_closed_loop_carries_what_it_carries_without_a_controller() -> None:
    carried = [
        sum(int(period["flows"]["pkts"][0]) for period in periods(native, 20)[5:])
        for native in (
            simulation(controller, {"window_pkts": 32}, 2_000) for controller in ("null", "optimal")
        )
    ]
    assert carried[1] >= 0.98 * carried[0]
