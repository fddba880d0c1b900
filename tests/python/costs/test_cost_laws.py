# SPDX-License-Identifier: BSD-3-Clause
"""test_cost_laws.py - cost laws from file to simulation: a table stays a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from batchplane.base.problems import BadInput
from batchplane.control.options import with_costs
from batchplane.costs.costs import costs_from, load_costs, resolve
from batchplane.costs.file import LOOP_KEYS
from batchplane.costs.law import CostLaw, law_from
from batchplane.native.loader import extension_path, load_native
from batchplane.sim.simulation import Simulation

native = pytest.mark.skipif(
    extension_path() is None,
    reason="NOT RUN: the extension is not built: tools/build.sh run native",
)

# Work in units of eight packets, as on a vector engine or a device.
STAIRS = CostLaw(60.0, 12.0, tuple(50.0 + 80.0 * ((n + 7) // 8) for n in range(1, 33)))
SPARSE = CostLaw(15.0, 4.0, (20.0, 25.0, 85.0, 160.0), (1, 2, 8, 32))
PIPELINE = """\
name: one
params: {batch: 32, trigger: 0}
engine: {batch_pkts: "${batch}", idle: hold}
ports: {link: {kind: ring, size_pkts: 256}}
generators:
  - {name: load, port: link, saturate: true, flows: [{name: f}]}
modules:
  in: {kind: port_in, port: link}
  work: {kind: acl, rules: [], trigger: "${trigger}"}
  out: {kind: sink}
connect:
  - in -> work -> out
flows:
  - {name: f, path: [in, work, out]}
"""


def costs_file(**laws: CostLaw) -> dict[str, Any]:
    return {
        "version": 2,
        "label": "given",
        "modules": [{"kind": kind, **law.as_json()} for kind, law in laws.items()],
        "loop": dict.fromkeys(LOOP_KEYS, 0.0),
    }


@pytest.mark.parametrize(
    ("law", "n_pkts", "ns"),
    [
        (CostLaw(100.0, 7.0), 2.5, 117.5),
        (STAIRS, 8, 130.0),
        (STAIRS, 9, 210.0),
        (STAIRS, 8.5, 170.0),
        (STAIRS, 40, 370.0 + 8 * 12.0),
        (SPARSE, 5, 55.0),
        (SPARSE, 32, 160.0),
        (SPARSE, 256, 160.0 + 224 * 4.0),
        (CostLaw(0.0, 3.0, (50.0,), (100,)), 1, 0.0),
    ],
)
def test_what_a_batch_takes(law: CostLaw, n_pkts: float, ns: float) -> None:
    assert law.at(n_pkts) == pytest.approx(ns, rel=1e-12)


@pytest.mark.parametrize("law", [CostLaw(1.25, 0.5), STAIRS, SPARSE])
def test_a_file_keeps_a_law(law: CostLaw, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(costs_file(acl=law)))
    [entry] = load_costs(path).entries
    assert entry.law == law
    assert law_from(law.as_json()) == law


def test_sizes_that_no_batch_has_are_left_out() -> None:
    assert STAIRS.up_to(4).table_ns == STAIRS.table_ns[:4]  # type: ignore[index]
    assert SPARSE.up_to(5) == CostLaw(15.0, 4.0, (20.0, 25.0, 85.0), (1, 2, 8))
    assert SPARSE.up_to(64) == SPARSE
    assert all(SPARSE.up_to(n).at(n) == SPARSE.at(n) for n in range(1, 33))


def test_a_daemon_is_told_the_table_and_who_shares_it(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(costs_file(acl=STAIRS, sink=CostLaw(3.0, 1.0))))
    modules = {"a": "acl", "b": "acl", "end": "sink"}
    pipeline = {
        "engine": {"batch_pkts": 9},
        "modules": {name: {"kind": kind, "params": {}} for name, kind in modules.items()},
    }
    told = with_costs({"name": "optimal", "costs": str(path)}, pipeline)["costs"]
    assert told == {
        "a": STAIRS.up_to(9).as_json(),
        "b": "a",
        "end": {"cost_per_batch_ns": 3.0, "cost_per_pkt_ns": 1.0},
    }
    assert len(told["a"]["table_ns"]) == 9


@native
def test_a_table_alone_gets_a_line() -> None:
    table = [10.0 + 2.0 * n for n in range(1, 9)]
    file = costs_from({"version": 2, "modules": [{"kind": "acl", "table_ns": table}]})
    [entry] = file.entries
    assert entry.law.cost_per_batch_ns == pytest.approx(10.0)
    assert entry.law.cost_per_pkt_ns == pytest.approx(2.0)
    assert entry.law.table_ns == tuple(table)


@native
def test_no_line_has_less_relative_error() -> None:
    """Compared with numpy's least squares of relative errors; here all errors are small enough to
    count by their squares."""
    numpy = pytest.importorskip("numpy")
    draws = numpy.random.default_rng(5)
    for _ in range(20):
        sizes = numpy.arange(1, 33)
        ns = (draws.uniform(5, 300) + draws.uniform(1, 30) * sizes) * draws.uniform(0.98, 1.02, 32)
        line = load_native().whole_cost({"table_ns": ns.tolist()})
        best, *_ = numpy.linalg.lstsq(
            numpy.stack([1 / ns, sizes / ns], axis=1), numpy.ones(32), rcond=None
        )
        assert line["cost_per_batch_ns"] == pytest.approx(best[0], rel=1e-6)
        assert line["cost_per_pkt_ns"] == pytest.approx(best[1], rel=1e-6)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"table_pkts": [1, 2]}, "table_pkts: expected the 4 batch sizes of table_ns"),
        ({"table_pkts": [1, 2, 2, 8]}, "table_pkts: batch sizes must ascend, from 1 packet on"),
        ({"table_pkts": [0, 1, 2, 3]}, "batch sizes must ascend"),
        ({"table_pkts": "x"}, "expected the 4 batch sizes"),
        ({"cost_per_pkt_ns": None}, "expected a time in ns, not None"),
    ],
)
def test_bad_tables(change: dict[str, Any], expected: str) -> None:
    document = costs_file(acl=SPARSE)
    document["modules"][0].update(change)
    with pytest.raises(BadInput) as failed:
        costs_from(document, "costs.json")
    [line] = failed.value.lines()
    assert expected in line


def rate_pps(tmp_path: Path, laws: dict[str, CostLaw], **params: int) -> float:
    pipeline, costs = tmp_path / "one.yaml", tmp_path / "costs.json"
    pipeline.write_text(PIPELINE)
    costs.write_text(json.dumps(costs_file(**laws)))
    return Simulation(str(pipeline), costs=str(costs), **params).run("20ms").rate_pps


@native
@pytest.mark.parametrize("law", [STAIRS, SPARSE], ids=["stairs", "sparse"])
@pytest.mark.parametrize("batch", [8, 9, 17, 32])
def test_a_simulation_runs_at_the_tables_rate(
    law: CostLaw, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All time is spent in input, module and end, each once per batch. The generator makes 40
    Mpps."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    laws = {"port_in": STAIRS.scaled(5), "acl": law.scaled(5), "sink": CostLaw(7.0, 1.0)}
    ns = sum(each.at(batch) for each in laws.values())
    assert rate_pps(tmp_path, laws, batch=batch) == pytest.approx(1e9 * batch / ns, rel=2e-3)


@native
def test_triggers_land_on_the_stairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls of 32 packets; a batch of 8 fills a unit of work, one of 9 wastes most of a unit."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    work = STAIRS.scaled(5)
    laws = {"port_in": CostLaw(50.0, 2.0), "acl": work, "sink": CostLaw(0.0, 1.0)}
    for trigger in (8, 9, 16):
        ns = laws["port_in"].at(32) / 32 + work.at(trigger) / trigger + 1.0
        measured = rate_pps(tmp_path, laws, trigger=trigger)
        assert measured == pytest.approx(1e9 / ns, rel=5e-3), trigger


@native
def test_costs_of_a_table_alone_are_known_to_controllers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were 0 and 0 if a file had no line."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    pipeline = tmp_path / "one.yaml"
    pipeline.write_text(PIPELINE)
    table = {"table_ns": [10.0 + 2.0 * n for n in range(1, 33)]}
    sim = Simulation(str(pipeline), costs=dict.fromkeys(("in", "work", "out"), table))
    period = next(iter(sim.steps("5ms", duration="5ms")))
    assert period["modules"]["cost_per_batch_ns"][1:] == pytest.approx([10.0] * 2)
    assert period["modules"]["cost_per_pkt_ns"][1:] == pytest.approx([2.0] * 2)


def test_what_a_pipeline_costs_keeps_tables() -> None:
    pipeline = {"name": "p", "modules": {"a": {"kind": "acl", "params": {}}}}
    found = resolve(pipeline, costs_from(costs_file(acl=SPARSE)))
    assert found.modules["a"] == SPARSE
    assert law_from(found.as_json()["modules"]["a"]) == SPARSE
