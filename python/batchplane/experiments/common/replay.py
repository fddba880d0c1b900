# SPDX-License-Identifier: BSD-3-Clause
"""replay.py - traffic of a case that is replayed in a loop instead of distributed by weight.

{"kind": "backbone", "groups": n, "packets": m}: a capture as `batchplane pcap make` generates it,
with
its destinations cut into n groups as `pcap cut` cuts them; group i is the generator's flow i.
{"kind": "bursts", "groups": n, "burst": b}: b packets of each flow in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...base.problems import BadInput, Problem
from ...traces.cut import cut, group_of
from ...traces.make import TraceMaker
from ...traces.model import TraceModel

# At least this many packets of `bursts` are written down; they repeat.
_MIN_PACKETS = 1024
Columns = dict[str, list[int]]


def with_trace(spec: Mapping[str, Any], trace: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The simulation with this traffic instead of the only generator's."""
    columns = columns_of(trace, seed)
    (name,) = [str(entry["name"]) for entry in spec["generators"]]
    known = len(spec["simulation"]["routes"][name])
    if trace["groups"] > known:
        message = f"generator '{name}' has {known} flows, and the trace {trace['groups']} groups"
        raise BadInput(Problem(message, "trace"))
    return {**spec, "simulation": {**spec["simulation"], "traces": {name: columns}}}


def columns_of(trace: Mapping[str, Any], seed: int) -> Columns:
    """Time, flow and size of each packet."""
    if trace["kind"] == "bursts":
        return _bursts(int(trace["groups"]), int(trace["burst"]))
    return _backbone(int(trace["groups"]), int(trace["packets"]), seed)


def _bursts(n_flows: int, burst: int) -> Columns:
    turn = [flow for flow in range(n_flows) for _ in range(burst)]
    flow = turn * (1 + _MIN_PACKETS // len(turn))
    return {"time_ns": list(range(len(flow))), "flow": flow}


@lru_cache(maxsize=8)
def _backbone(n_groups: int, packets: int, seed: int) -> Columns:
    chunks, addresses = backbone_packets(packets, seed)
    dst = np.concatenate([addresses[chunk.dst] for chunk in chunks])
    seen, place, counts = np.unique(dst, return_inverse=True, return_counts=True)
    found = cut({int(a): int(n) for a, n in zip(seen, counts, strict=True)}, n_groups)
    group = np.array(group_of((int(a) for a in seen), found), np.int64)
    return {
        "time_ns": np.concatenate([chunk.time_ns for chunk in chunks]).tolist(),
        "flow": group[place].tolist(),
        "size_bytes": np.concatenate([chunk.size_bytes for chunk in chunks]).tolist(),
    }


@lru_cache(maxsize=2)
def backbone_packets(packets: int, seed: int) -> tuple[list[Any], Any]:
    """Chunks of a generated capture, and the addresses by rank."""
    maker = TraceMaker(TraceModel(packets=packets, seed=seed))
    return list(maker), maker.addresses
