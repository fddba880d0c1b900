# SPDX-License-Identifier: BSD-3-Clause
"""test_fuzz_files.py - every format that the command line reads, mutated: accepted, or rejected in
one line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from built import needs_daemon_and_extension
from fuzzed import Format, wrongs
from mutations import mutated_bytes, mutated_json, mutated_text

from batchplane.lang.load import load_pipeline

pytestmark = needs_daemon_and_extension
TREE = Path(__file__).resolve().parents[3]
N_FILES = 200
N_FILES_LONG = 2000
SHORT = ("--duration", "200us")

TRAFFIC = """\
generators:
  - name: load
    rate_pps: 500000
    arrivals: poisson
    flows:
      - {name: a, count: 3, dst_ip: 10.1.0.1, dst_ip_step: 1, weight: 2, size_bytes: 128}
      - {name: b, rate_pps: 1000, size_mix: [{size_bytes: 64, weight: 7}, {size_bytes: 1518}]}
"""
SCENARIO = """\
name: rush
params: {tight: 80us}
duration: 300us
events:
  - {at: 20us, set: load.rate=4M}
  - {at: 40us, set: ["flow_*.slo=${tight}", idle=hold]}
  - {at: 60us, stop: load}
  - {at: 80us, start: load}
  - {at: 90us, stall: w0, for: 5us}
  - {at: 100us, cost: "leaf_*", times: 2}
  - {at: 110us, cost: leaf_0, per_batch: 4us, per_pkt: 20ns}
  - {at: 120us, set: "leaf_*.trigger=8"}
  - {at: 130us, table: split, verb: set, args: {weights: [1, 2]}, holds_up: 2us}
  - repeat: {as: i, count: 4}
    value: {at: "${160 + 10 * i}us", set: "load.rate=${1 + i}M"}
"""
MACHINE = {
    "loop": {"poll_per_batch_ns": 40, "firing_ns": 12.5, "generator_per_pkt_ns": 20},
    "overflow": "drop",
    "noise_sigma": 0.1,
    "stall_rate_per_s": 25,
    "stall_lengths_ns": [100, 2000],
}
COSTS = {
    "version": 2,
    "label": "measured",
    "cpu": "x",
    "modules": [
        {"name": "leaf_0", "kind": "cost", "cost_per_batch_ns": 100, "cost_per_pkt_ns": 10},
        {"kind": "split", "table_ns": [10, 20, 40], "table_pkts": [1, 32, 256]},
        {"kind": "port_in", "cost_per_batch_ns": 5, "cost_per_pkt_ns": 1},
        {"kind": "sink", "cost_per_batch_ns": 5, "cost_per_pkt_ns": 1},
    ],
}


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def _text(data: bytes, rng: random.Random) -> bytes:
    return mutated_text(data.decode(), rng).encode()


def _json(data: bytes, rng: random.Random) -> bytes:
    return mutated_json(data.decode(), rng).encode()


def _pipelines() -> list[Path]:
    return sorted(TREE.glob("pipelines/*.yaml"))


def _canonical(folder: Path) -> list[Path]:
    """One with the line numbers of its keys, which are most of it; the others without."""
    found = [_written(folder, "whole.json", json.dumps(load_pipeline("tree").pipeline))]
    for name in ("tree", "simple", "router"):
        bare = {**load_pipeline(name).pipeline, "source_map": {}}
        found.append(_written(folder, f"{name}.json", json.dumps(bare)))
    return found


def _captures() -> list[Path]:
    return [
        path for path in sorted(TREE.glob("tests/fuzz/corpus/pcap/*.pcap*")) if path.stat().st_size
    ]


def _formats(folder: Path) -> dict[str, Format]:
    tree = ("simulate", "tree", *SHORT)
    made = [
        Format("pipeline", _pipelines(), _text, lambda file: ("simulate", str(file), *SHORT)),
        Format("planned", _pipelines(), _text, lambda file: ("plan", str(file), "--slo", "80us")),
        Format("canonical", _canonical(folder), _json, lambda file: ("simulate", str(file), *SHORT)),
        Format(
            "traffic", [_written(folder, "t.yaml", TRAFFIC)], _text,
            lambda file: (*tree, "--traffic", str(file)),
        ),
        Format(
            "scenario", [_written(folder, "s.yaml", SCENARIO)], _text,
            lambda file: ("simulate", "tree", "--scenario", str(file)),
        ),
        Format(
            "machine", [_written(folder, "m.json", json.dumps(MACHINE))], _json,
            lambda file: (*tree, "--machine", str(file)),
        ),
        Format(
            "costs", [_written(folder, "c.json", json.dumps(COSTS))], _json,
            lambda file: (*tree, "--costs", str(file)),
        ),
        Format("capture", _captures(), mutated_bytes, lambda file: ("pcap", "stats", str(file))),
    ]  # fmt: skip
    return {format_.name: format_ for format_ in made}


NAMES = ("pipeline", "planned", "canonical", "traffic", "scenario", "machine", "costs", "capture")


def _check(name: str, count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    monkeypatch.setenv("BATCHPLANE_RUN_DIR", str(folder / "run"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    found = wrongs(_formats(folder)[name], count, folder)
    assert not found, f"{len(found)} of {count}:\n" + "\n".join(found[:10])


@pytest.mark.parametrize("name", NAMES)
def test_changed_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(name, N_FILES, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_many_changed_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(name, N_FILES_LONG, tmp_path, monkeypatch)
