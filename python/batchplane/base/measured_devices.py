# SPDX-License-Identifier: BSD-3-Clause
"""measured_devices.py - profiles of devices that come with the project: what a GPU takes that is
not here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .json_file import read_json
from .problems import BadInput, Problem, suggestion

_FOLDER = Path(__file__).with_name("measured")
_OWN_MEMORY = ("cuda", "opencl")


def measured_names() -> list[str]:
    """Such as h200."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def measured_file(name: str, file: str = "", key: str = "") -> Path:
    """Its profile. Raises BadInput, with where it was asked for."""
    if name in measured_names():
        return _FOLDER / f"{name}.json"
    message = f"no profile of a device '{name}' comes with this program"
    raise BadInput(Problem(message, file, key, suggestion(name, measured_names())))


def measured_device(name: str, file: str = "", key: str = "") -> dict[str, Any]:
    """What it takes, as parameters of a simulated device: laws by kind of module, and watts."""
    profile = read_json(measured_file(name, file, key))
    row = min(
        (row for row in profile["devices"] if row["kind"] in _OWN_MEMORY),
        key=lambda row: _OWN_MEMORY.index(row["kind"]),
    )
    params: dict[str, Any] = {"laws": {}}
    for law in profile["laws"]:
        if law["on"] == row["name"]:
            parts = ("batch_ns", "pkt_ns", "byte_ns", "length_ns")
            params["laws"][law["kind"]] = {part: law[part] for part in parts if law.get(part)}
    watts = row.get("measured", {})
    params |= {key: watts[key] for key in ("off_w", "idle_w") if key in watts}
    if "off_w" in params and "idle_w" in params:
        # As it was found it may have just been used: nobody saves watts by using it.
        params["off_w"] = min(params["off_w"], params["idle_w"])
    if watts.get("active_w"):
        params["active_w"] = max(watts["active_w"].values())
    return params


def like_measured(params: Mapping[str, Any]) -> dict[str, Any]:
    """Of a simulated device: instead of `like` the times and watts of that one, where it has no
    others. Raises BadInput."""
    of = measured_device(str(params["like"]))
    own = {key: value for key, value in params.items() if key != "like"}
    laws = own.get("laws", {})
    # What is no mapping is refused with the rest.
    return {**of, **own, "laws": {**of["laws"], **laws} if isinstance(laws, Mapping) else laws}
