# SPDX-License-Identifier: BSD-3-Clause
"""test_sim_replay.py - captures in simulations: they are replayed to the end, with little
memory."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built import needs_extension

from batchplane.base.problems import BadInput
from batchplane.native.loader import make_simulation
from batchplane.sim.prepare import prepare
from batchplane.sim.simulation import Simulation
from batchplane.traces.pcap_file import write_pcap

pytestmark = needs_extension
PIPELINE = """\
name: one
engine: {stranding_limit: 10ms}
ports: {link: {kind: ring, size_pkts: 64}}
generators: [{name: load, port: link}]
modules:
  in: {kind: port_in, port: link}
  out: {kind: sink}
connect: [in -> out]
"""
# 100 ns per packet: 10 Mpps.
COSTS = {
    "in": {"cost_per_batch_ns": 0, "cost_per_pkt_ns": 40},
    "out": {"cost_per_batch_ns": 0, "cost_per_pkt_ns": 60},
}
FRAME = bytes(12) + b"\x08\x00" + bytes(46)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The pipeline as a file, on a machine without a daemon."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    (tmp_path / "one.yaml").write_text(PIPELINE)
    return str(tmp_path / "one.yaml")


def capture(tmp_path: Path, n_pkts: int, gap_ns: int) -> Path:
    path = tmp_path / "t.pcap"
    write_pcap(path, ((i * gap_ns, FRAME) for i in range(n_pkts)))
    return path


def in_pkts(simulation: Simulation, **more: Any) -> int:
    result = simulation.run(is_drained=True, **more)
    assert result.report["balance"]["is_exact"]
    return int(result.report["balance"]["in_pkts"])


@pytest.mark.parametrize("period", ["10ms", "100us", "7us"])
def test_a_capture_faster_than_the_worker_is_replayed_to_its_end(
    period: str, file: str, tmp_path: Path
) -> None:
    # 20,000 packets in 500 us, for which the worker needs 2 ms.
    simulation = Simulation(file, capture(tmp_path, 20_000, 25), COSTS)
    assert in_pkts(simulation, period=period) == 20_000
    assert simulation.warnings == []
    # It ends once every packet is in, not a period later.
    assert 1_900_000 < simulation.now_ns < 2_100_000 + 20_000_000
    result = Simulation(file, capture(tmp_path, 20_000, 25), COSTS).run(period=period)
    assert 1_950_000 < result.simulated_ns < 2_050_000


def test_a_slow_capture_ends_with_its_last_packet(file: str, tmp_path: Path) -> None:
    simulation = Simulation(file, capture(tmp_path, 1000, 1000), COSTS)
    result = simulation.run()
    assert result.simulated_ns == 999_000 + 10_000
    assert result.report["balance"]["in_pkts"] == 1000


def test_what_a_duration_cuts_off_is_counted(file: str, tmp_path: Path) -> None:
    path = capture(tmp_path, 20_000, 25)
    for duration in ("100us", "1ms"):
        simulation = Simulation(file, path, COSTS)
        taken = in_pkts(simulation, duration=duration)
        assert taken < 20_000
        assert simulation.warnings == [
            f"{20_000 - taken} packets of the capture were not replayed: the run ended first"
        ]


def test_a_generator_that_is_off_replays_nothing_and_the_run_ends(
    file: str, tmp_path: Path
) -> None:
    simulation = Simulation(file, capture(tmp_path, 100, 25), COSTS, sets=["load.on=false"])
    # It was on at time 0, when the first packet was due.
    assert in_pkts(simulation) == 1
    assert simulation.warnings == [
        "99 packets of the capture were not replayed: there was no room for them"
    ]


# --- memory ---------------------------------------------------------------------------------------


def test_columns_go_as_they_are(file: str, tmp_path: Path) -> None:
    inputs = prepare(file, capture(tmp_path, 50_000, 1000), COSTS)
    columns = inputs.spec["simulation"]["traces"]["load"]
    assert sum(column.nbytes for column in columns.values()) == 16 * 50_000
    # The data for another process.
    assert len(pickle.dumps(inputs)) < 16 * 50_000 + 20_000
    Simulation(inputs)
    assert inputs.spec["simulation"]["traces"]["load"] is columns, "the caller's stays as it is"


def test_lists_and_columns_give_the_same(file: str, tmp_path: Path) -> None:
    inputs = prepare(file, capture(tmp_path, 500, 1000), COSTS)
    spec = inputs.spec

    def run(columns: dict[str, Any]) -> Any:
        made = {**spec, "simulation": {**spec["simulation"], "traces": {"load": columns}}}
        native = make_simulation(made)
        native.run_until(1_000_000)
        return native.show("generators")

    columns = spec["simulation"]["traces"]["load"]
    arrays = run(columns)
    assert arrays[0]["sent_pkts"] == 500
    assert run({name: column.tolist() for name, column in columns.items()}) == arrays
    # Columns of other types than the extension's own, or not contiguous.
    assert run({name: column.astype(np.uint64) for name, column in columns.items()}) == arrays
    assert run({name: np.repeat(column, 2)[::2] for name, column in columns.items()}) == arrays


@pytest.mark.parametrize(
    ("key", "i", "value", "words"),
    [
        ("flow", 3, 7, "packet 3 of the trace is of flow 7 of 1"),
        ("flow", 3, -1, "packet 3 of the trace is of flow -1 of 1"),
        ("time_ns", 0, -5, "packet 0 of the trace is before time 0"),
        ("time_ns", 4, 1, "packet 4 of the trace is earlier than the one before"),
    ],
)
def test_invalid_columns(
    key: str, i: int, value: int, words: str, file: str, tmp_path: Path
) -> None:
    inputs = prepare(file, capture(tmp_path, 10, 1000), COSTS)
    inputs.spec["simulation"]["traces"]["load"][key][i] = value
    with pytest.raises(BadInput, match=words):
        Simulation(inputs)
