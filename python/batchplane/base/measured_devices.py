# SPDX-License-Identifier: BSD-3-Clause
"""measured_devices.py - device profiles that come with the project, to simulate a GPU that this
machine lacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .json_file import read_json
from .problems import BadInput, Problem, suggestion

_FOLDER = Path(__file__).with_name("measured")
_OWN_MEMORY = ("cuda", "opencl")


def measured_names() -> list[str]:
    """The names of the profiles, such as h200."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def measured_file(name: str, file: str = "", key: str = "") -> Path:
    """The profile's file. Raises BadInput that names where the profile was asked for."""
    if name in measured_names():
        return _FOLDER / f"{name}.json"
    message = f"no profile of a device '{name}' comes with this program"
    raise BadInput(Problem(message, file, key, suggestion(name, measured_names())))


def measured_device(name: str, file: str = "", key: str = "") -> dict[str, Any]:
    """The profile as parameters of a simulated device: laws by module kind, and watts."""
    profile = read_json(measured_file(name, file, key))
    row = min(
        (row for row in profile["devices"] if row["kind"] in _OWN_MEMORY),
        key=lambda row: _OWN_MEMORY.index(row["kind"]),
    )
    params: dict[str, Any] = {"laws": {}}
    for law in profile["laws"]:
        if law["on"] == row["name"]:
            parts = ("batch_ns", "pkt_ns", "byte_ns", "length_ns", "table")
            params["laws"][law["kind"]] = {part: law[part] for part in parts if law.get(part)}
    return params | measured_watts(row)


def measured_watts(row: Mapping[str, Any]) -> dict[str, float]:
    """What a device's sensor read, as parameters of a device; empty if it has none. `row`: of the
    profile's devices."""
    read = row.get("measured", {})
    watts = {key: float(read[key]) for key in ("off_w", "idle_w") if key in read}
    if "off_w" in watts and "idle_w" in watts:
        # The device may have been busy just before off_w was read; use must never save power.
        watts["off_w"] = min(watts["off_w"], watts["idle_w"])
    if read.get("active_w"):
        watts["active_w"] = max(map(float, read["active_w"].values()))
    return watts


def like_measured(params: Mapping[str, Any]) -> dict[str, Any]:
    """A simulated device's parameters, with `like` replaced by that profile; its own values win.
    Raises BadInput."""
    of = measured_device(str(params["like"]))
    own = {key: value for key, value in params.items() if key != "like"}
    laws = own.get("laws", {})
    # Laws that are no mapping are rejected later, with the other mistakes.
    return {**of, **own, "laws": {**of["laws"], **laws} if isinstance(laws, Mapping) else laws}
