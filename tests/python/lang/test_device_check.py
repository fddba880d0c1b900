# SPDX-License-Identifier: BSD-3-Clause
"""test_device_check.py - mistakes in devices: the same messages as the daemon's, without a
daemon."""

from __future__ import annotations

import re
from typing import Any

import pytest
from built import needs_daemon, needs_extension

from batchplane.base.problems import BadInput
from batchplane.daemon.process import find_program
from batchplane.lang.canonical import Document
from batchplane.lang.check import daemon_check
from batchplane.lang.device_check import device_problems
from batchplane.lang.device_schema import DEVICE_PARAMS
from batchplane.lang.kinds import Kinds
from batchplane.sim.prepare import load_document

LAW = {"digest": {"batch_ns": 5000.0, "pkt_ns": 10}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kind": "coers"}, "devices.gpu.kind: there is no kind of device 'coers'"),
    ({"params": {"thread": 1}}, "devices.gpu.thread: this is not known here (did you mean 'threads'?)"),
    ({"params": {"threads": 17}}, "devices.gpu.threads: 17 is out of range: at most 16"),
    ({"params": {"idle_w": -3}}, "devices.gpu.idle_w: -3 is out of range"),
    ({"params": {"laws": [1]}}, "devices.gpu.laws: expected a mapping, found a list"),
    ({"params": {"laws": {"digest": 3}}}, "devices.gpu.laws.digest: expected a mapping, found '3'"),
    ({"params": {"laws": {"digest": {"pkts_ns": 3}}}}, "devices.gpu.laws.digest.pkts_ns: this is"),
    ({"params": {"laws": {"digest": {"pkt_ns": -1}}}}, "devices.gpu.laws.digest.pkt_ns: -1 is out"),
    ({"params": {"laws": {"digest": {"pkt_ns": "x"}}}}, "laws.digest.pkt_ns: expected a number"),
]  # fmt: skip


def document(**device: Any) -> Document:
    return Document(
        {
            "version": 1,
            "name": "p",
            "devices": {"gpu": {"kind": "simulated", "params": {"laws": LAW}, **device}},
            "modules": {"in": {"kind": "source", "params": {}}, "out": {"kind": "sink", "params": {}}},
            "edges": [{"from": "in", "gate": "0", "to": "out"}],
        }
    )  # fmt: skip


@pytest.mark.parametrize(("device", "line"), WRONG)
def test_invalid_devices_are_reported_in_a_line(device: dict[str, Any], line: str) -> None:
    (problem,) = device_problems(document(**device))
    assert line in problem.line()


@needs_extension
@pytest.mark.parametrize("device", [device for device, _ in WRONG])
def test_a_simulation_is_refused(device: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        load_document(document(**device), {}, Kinds())


def test_valid_devices_are_not_reported() -> None:
    for kind in DEVICE_PARAMS:
        assert device_problems(document(kind=kind)) == []


@needs_daemon
@pytest.mark.parametrize("device", [device for device, _ in WRONG])
def test_the_daemon_refuses_the_same(device: dict[str, Any]) -> None:
    problems, _ = daemon_check(document(**device), find_program())
    assert any("devices.gpu" in problem.line() for problem in problems), problems


@needs_daemon
@pytest.mark.parametrize("kind", DEVICE_PARAMS)
def test_parameters_are_those_of_the_daemon(kind: str) -> None:
    unknown = document(kind=kind, params={"laws": LAW, "qqqqqqqqq": 1})
    told = " ".join(problem.line() for problem in daemon_check(unknown, find_program())[0])
    listed = re.search(r"one of: ([a-z_, ]+)", told)
    assert listed is not None, told
    assert set(listed[1].split(", ")) - {"kind"} == set(DEVICE_PARAMS[kind].model_fields)
