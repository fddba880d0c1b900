# SPDX-License-Identifier: BSD-3-Clause
"""records.py - packets, hops and firings of a simulation, with names instead of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..show.rates import CAUSES

if TYPE_CHECKING:
    from pandas import DataFrame

Columns = Mapping[str, Mapping[str, Any]]


def named_frame(
    what: str, recorded: Columns, model: Mapping[str, Any], traffic_flows: Sequence[str]
) -> DataFrame:
    """One of `packets`, `hops`, `firings` as a frame. Packets get the declared flow they took."""
    import pandas as pd

    frame = pd.DataFrame(dict(recorded[what]))
    if what == "packets":
        flows = [str(entry["name"]) for entry in model["flows"]]
        frame = frame.rename(columns={"flow": "traffic_flow"})
        frame["traffic_flow"] = _named(frame["traffic_flow"], traffic_flows)
        numbers = declared_flows(len(frame), recorded["hops"], model)
        frame.insert(1, "flow", _named(numbers, [*flows, "other"]))
        return frame
    if what == "firings":
        # Batches that no buffer released have no cause.
        frame = frame[frame["cause"] < len(CAUSES)].reset_index(drop=True)
        frame["cause"] = _named(frame["cause"], CAUSES)
    frame["module"] = _named(frame["module"], [str(entry["name"]) for entry in model["modules"]])
    return frame


def _named(numbers: Any, names: Sequence[str]) -> Any:
    import numpy as np
    import pandas as pd

    codes = np.asarray(numbers, dtype="int64")
    known = np.where(codes < len(names), codes, -1)
    return pd.Categorical.from_codes(known, categories=pd.Index(list(names)))


def declared_flows(n_packets: int, hops: Mapping[str, Any], model: Mapping[str, Any]) -> list[int]:
    """The number of the declared flow of each packet, by the modules that it ran through.

    Packets on other paths get the number after the last one.
    """
    ran = {module for task in model["tasks"] for module in task["modules"]}
    flows = [
        tuple(int(module) for module in entry["path"] if module in ran) for entry in model["flows"]
    ]
    number = {path: i for i, path in reversed(list(enumerate(flows)))}
    ways: list[list[int]] = [[] for _ in range(n_packets)]
    for packet, module in zip(hops["id"].tolist(), hops["module"].tolist(), strict=True):
        ways[packet].append(module)
    return [number.get(tuple(way), len(flows)) for way in ways]
