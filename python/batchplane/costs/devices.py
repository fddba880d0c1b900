# SPDX-License-Identifier: BSD-3-Clause
"""devices.py - batch times on devices, from files that `batchplane profile --devices` wrote."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.json_file import read_json
from ..base.measured_devices import measured_watts
from ..base.problems import BadInput, Problem
from ..base.version import __version__
from ..base.whole_file import write_whole
from .batch_law import LAW_KEYS, BatchLaw
from .cache import cache_folder
from .keys import cpu_name, params_key, pipeline_key

DEVICES_VERSION = 2
INLINE = "inline"
CORES = "cores"
OPENCL = "opencl"
CUDA = "cuda"
SIMULATED = "simulated"
OWN_MEMORY = (OPENCL, CUDA)
COMMAND = "batchplane profile --devices"
WATT_KEYS = ("off_w", "idle_w", "active_w")
_SETUPS = "setups"
# A larger slow-down means that the machine was held up; the placer has the same limit,
# kMostStretch.
MOST_FACTOR = 5.0


@dataclass(frozen=True)
class MeasuredLaw:
    """The measured law of a module kind on a device."""

    kind: str
    params_key: str
    on: str
    law: BatchLaw
    feed: BatchLaw  # time of the worker that hands the packets over
    max_batch_pkts: int


@dataclass(frozen=True)
class DeviceProfile:
    """A parsed file. `devices` and `beside` are rows as in the file."""

    laws: tuple[MeasuredLaw, ...]
    devices: tuple[Mapping[str, Any], ...]
    beside: tuple[Mapping[str, Any], ...] = ()
    cpu: str = ""
    date: str = ""
    daemon: str = ""
    file: str = ""

    def device_for(self, kind: str, params: Mapping[str, Any]) -> str:
        """The profile's name for a device as a pipeline declares it; empty if it was not
        measured."""
        for row in self.devices:
            if row["kind"] == kind and _is_meant(row, params):
                return str(row["name"])
        return ""

    def watts(self, kind: str, params: Mapping[str, Any]) -> dict[str, float]:
        """What the sensor of a device read, as a pipeline declares it; empty if the pipeline
        gives watts itself, or if nothing was read."""
        if any(key in params for key in WATT_KEYS):
            return {}
        name = self.device_for(kind, params)
        return next((measured_watts(row) for row in self.devices if row["name"] == name), {})

    def law(self, kind: str, params: Mapping[str, Any], on: str) -> tuple[MeasuredLaw, bool] | None:
        """The law of that module kind there, and whether it was measured with the same
        parameters."""
        key = params_key(kind, params)
        found = [law for law in self.laws if law.kind == kind and law.on == on]
        for law in found:
            if law.params_key == key:
                return law, True
        return (found[0], False) if found else None

    def slowdowns(
        self,
        kinds: Collection[str],
        devices: Mapping[str, tuple[str, Mapping[str, Any]]],
    ) -> list[dict[str, Any]]:
        """How many times longer batches take side by side, for modules of these kinds on a
        pipeline's devices (kind and parameters by name). Pairs that do not slow each other are left
        out. So are implausible factors: a pair that is never tried is never corrected."""
        factors: dict[tuple[str, ...], float] = {}
        for row in self.beside:
            pair = tuple(str(row[key]) for key in ("kind", "on", "beside", "on_other"))
            if float(row["factor"]) <= MOST_FACTOR:
                factors[pair] = max(factors.get(pair, 1.0), float(row["factor"]))
        names: dict[str, list[str]] = {}
        for name, (kind, params) in devices.items():
            names.setdefault(self.device_for(kind, params), []).append(name)
        return [
            {"kind": kind, "on": on, "beside": beside, "on_other": on_other, "factor": factor}
            for (kind, on_as, beside, other_as), factor in factors.items()
            if factor > 1 and kind in kinds and beside in kinds
            for on in names.get(on_as, ())
            for on_other in names.get(other_as, ())
        ]


def _is_meant(row: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Matches parts of names, as the daemon does, but GPU numbers exactly: "0" is in "H200" too."""
    device = str(params.get("device", ""))
    if row["kind"] == CUDA and device.isdigit():
        return device == str(row.get("number"))
    parts = {"platform": str(params.get("platform", "")), "device": device}
    return all(part in str(row.get(key, "")) for key, part in parts.items())


def device_profile_from(document: Any, file: str = "") -> DeviceProfile:
    """Raises BadInput with the first mistake."""
    try:
        return _read_profile(document, file)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = "this is not a whole profile of devices"
        raise BadInput(Problem(message, file, str(error), COMMAND + " writes one")) from error


def _read_profile(document: Any, file: str) -> DeviceProfile:

    def refuse(message: str, key: str = "") -> BadInput:
        return BadInput(Problem(message, file, key, COMMAND + " writes one"))

    if not isinstance(document, Mapping) or "laws" not in document or "devices" not in document:
        raise refuse("this is not a profile of devices")
    if document.get("version") != DEVICES_VERSION:
        told = f"its format is {document.get('version')}, this version reads {DEVICES_VERSION}"
        raise refuse(told, "version")

    def law_in(row: Mapping[str, Any], key: str) -> BatchLaw:
        values = [row.get(name) for name in LAW_KEYS[:3]] + [row.get("length_ns", 0.0)]
        if not all(isinstance(v, (int, float)) and 0 <= v <= 1e9 for v in values):
            raise refuse(
                "a law has batch_ns, pkt_ns, byte_ns and perhaps length_ns, each 0 to 1e9", key
            )
        return BatchLaw.given(row)

    laws = []
    names = {str(row["name"]) for row in document["devices"] if row["kind"]}
    for row in document.get("beside", ()):
        _ = row["kind"], row["on"], row["beside"], row["on_other"], float(row["factor"])
    for i, row in enumerate(document["laws"]):
        key = f"laws[{i}]"
        if row.get("on") not in names:
            raise refuse(f"there is no device '{row.get('on')}'", f"{key}.on")
        laws.append(
            MeasuredLaw(
                str(row["kind"]), str(row.get("params_key", "")), str(row["on"]),
                law_in(row, key), law_in(row.get("feed", {}), f"{key}.feed"),
                int(row.get("max_batch_pkts", 16_384)),
            )
        )  # fmt: skip
    return DeviceProfile(
        tuple(laws), tuple(document["devices"]), tuple(document.get("beside", ())),
        str(document.get("cpu", "")), str(document.get("date", "")),
        str(document.get("daemon", "")), file,
    )  # fmt: skip


def load_device_profile(path: Path) -> DeviceProfile:
    """Reads a file that the user names, of any machine. Raises BadInput."""
    return device_profile_from(read_json(path, "a profile of devices", COMMAND), str(path))


def device_profile_path(
    pipeline: Mapping[str, Any] | None = None, cpu: str = "", env: Mapping[str, str] = os.environ
) -> Path:
    """Where the profile of a pipeline, or of the built-in setups, is kept: next to the costs."""
    machine = hashlib.sha256((cpu or cpu_name()).encode()).hexdigest()[:8]
    key = _SETUPS if pipeline is None else pipeline_key(pipeline)
    return cache_folder(env) / f"devices-{key}-{machine}-v{DEVICES_VERSION}.json"


def keep_device_profile(
    document: Mapping[str, Any],
    pipeline: Mapping[str, Any] | None = None,
    env: Mapping[str, str] = os.environ,
) -> Path:
    """Keeps a profile; readers see the old file or the new one."""
    path = device_profile_path(pipeline, env=env)
    write_whole(path, json.dumps(document, indent=1) + "\n")
    return path


@dataclass(frozen=True)
class KeptDevices:
    """The profile to use; and a file that cannot be used, with the reason, even if another serves
    instead. All empty if nothing was measured."""

    profile: DeviceProfile | None = None
    reason: str = ""
    file: str = ""

    def warning(self) -> Problem | None:
        """A warning about a file that cannot be used; None if there is none."""
        if not self.reason:
            return None
        instead = f"{self.profile.file} serves instead" if self.profile else "it is not used"
        message = f"the saved profile of devices {self.reason}: {instead}"
        return Problem(message, self.file, fix=f"{COMMAND} measures again", is_warning=True)


def kept_device_profile(
    pipeline: Mapping[str, Any] | None = None, env: Mapping[str, str] = os.environ
) -> KeptDevices:
    """The pipeline's own profile, else that of the setups, of this machine and version."""
    reason, file = "", ""
    for of in ([pipeline] if pipeline is not None else []) + [None]:
        profile, why, which = _usable(device_profile_path(of, env=env))
        if why and not reason:
            reason, file = why, str(which)
        if profile is not None:
            return KeptDevices(profile, reason, file)
    return KeptDevices(None, reason, file)


def _usable(path: Path) -> tuple[DeviceProfile | None, str, Path]:
    """The profile, or the reason why it is unusable and the file; no reason if there is no file."""
    if not path.is_file():
        pattern = path.name.rpartition("-v")[0].rpartition("-")[0] + "-*.json"
        others = sorted(path.parent.glob(pattern))
        if others:
            return None, "is from another machine or version", others[0]
        return None, "", path
    try:
        profile = load_device_profile(path)
    except BadInput as error:
        return None, f"cannot be used: {error.problems[0].message}", path
    if profile.cpu != cpu_name():
        return None, f"is from another machine ({profile.cpu or 'unknown'})", path
    if profile.daemon != __version__:
        return None, f"is from another version ({profile.daemon or 'unknown'})", path
    return profile, "", path
