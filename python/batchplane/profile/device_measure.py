# SPDX-License-Identifier: BSD-3-Clause
"""device_measure.py - runs the daemon's device profiler, and fits laws to its times."""

from __future__ import annotations

import copy
import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, RunFailed
from ..base.version import __version__
from ..costs.devices import CORES, CUDA, DEVICES_VERSION, INLINE, OPENCL
from ..costs.keys import cpu_name, params_key
from ..daemon.process import find_program
from ..lang.load import load_pipeline
from .device_fit import Point, fit_and_judge, fit_law
from .measure import Progress, call_profiler

SETUP = Path(__file__).with_name("devices.yaml")
APPLICATIONS = ("esp_encrypt", "esp_decrypt", "dpi", "digest", "classify")
_START_S = 60.0  # large tables and kernels to compile
# Runs the daemon with a request on a pipeline, and returns its output.
Measure = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class DeviceOptions:
    """What to measure, and for how long."""

    lengths: tuple[int, ...] = (64, 256, 576, 1024, 1472)
    batch_pkts: tuple[int, ...] = (1, 4, 16, 64, 256, 1024, 4096, 16384)
    ms: float = 100.0  # for batches of one size
    pair_batch_pkts: int = 256
    pair_bytes: int = 576
    power_ms: float = 2000.0  # for each reading of a sensor, at the longest length
    cores: str | None = None

    @staticmethod
    def quick(cores: str | None = None) -> DeviceOptions:
        """For tests and a first look."""
        return DeviceOptions((64, 576, 1472), (1, 8, 64, 256, 1024), 3.0, 64, 576, 0.0, cores)


@dataclass
class Found:
    """The devices of this machine."""

    devices: list[dict[str, Any]] = field(default_factory=list)
    without_opencl: str = ""  # the reason
    without_cuda: str = ""


def find_devices() -> Found:
    """Inline, a thread, and the devices that OpenCL and NVIDIA's driver list. Simulated devices are
    not included."""
    found = Found([{"name": INLINE, "kind": INLINE}, {"name": CORES, "kind": CORES}])
    told, found.without_opencl = _listed("--opencl")
    opencl: list[dict[str, Any]] = []
    for platform in told.get("platforms", []):
        drivers = platform.get("drivers", [])
        for i, device in enumerate(platform["devices"]):
            opencl.append(
                {
                    "name": f"{OPENCL}{len(opencl)}", "kind": OPENCL,
                    "platform": platform["platform"], "device": device,
                    "driver": drivers[i] if i < len(drivers) else "",
                }
            )  # fmt: skip
    if not opencl and not found.without_opencl:
        found.without_opencl = "no platform has a device"
    told, found.without_cuda = _listed("--cuda")
    cuda = [
        {
            "name": f"{CUDA}{i}", "kind": CUDA, "device": gpu["device"], "driver": gpu["driver"],
            "number": i, "off_w": gpu.get("watts"),
        }
        for i, gpu in enumerate(told.get("devices", []))
    ]  # fmt: skip
    if not cuda and not found.without_cuda:
        found.without_cuda = "the driver has no GPU"
    found.devices += opencl + cuda
    return found


def _listed(flag: str) -> tuple[dict[str, Any], str]:
    """The daemon's list of devices, or the reason why there is none."""
    try:
        told = subprocess.run(
            [str(find_program()), flag], capture_output=True, text=True, timeout=_START_S,
            check=False,
        ).stdout  # fmt: skip
        answer: dict[str, Any] = json.loads(told)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}, "the daemon cannot list its devices"
    return answer, str(answer.get("missing", ""))


def setup_pipeline() -> dict[str, Any]:
    """The canonical pipeline of the built-in applications."""
    document = load_pipeline(str(SETUP))
    if document.problems:
        raise BadInput(document.problems)
    return document.pipeline


def with_length(pipeline: Mapping[str, Any], n_bytes: int) -> dict[str, Any]:
    """The pipeline with frames of this length only."""
    changed = copy.deepcopy({k: v for k, v in pipeline.items() if k != "source_map"})
    for generator in changed.get("generators", []):
        params = generator.setdefault("params", {})
        for place in (params, *params.get("flows", [])):
            for key in ("imix", "size_mix", "size_bytes"):
                place.pop(key, None)
        params["size_bytes"] = n_bytes
    return changed


def applications_in(pipeline: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """One module for each cost: those named, by name or by kind. Raises BadInput."""
    modules = pipeline["modules"]
    able = {name: m for name, m in modules.items() if m["kind"] in APPLICATIONS}
    wrong = [n for n in names if n not in able and n not in {m["kind"] for m in able.values()}]
    if wrong or not able:
        what = f"'{wrong[0]}' can run on no device" if wrong else "no module can run on a device"
        raise BadInput(Problem(what, "command line", fix=", ".join(APPLICATIONS)))
    chosen: dict[str, str] = {}
    for name, module in able.items():
        if not names or name in names or module["kind"] in names:
            chosen.setdefault(params_key(module["kind"], module.get("params", {})), name)
    return list(chosen.values())


def profile_devices(
    pipeline: Mapping[str, Any] | None,
    names: Sequence[str],
    options: DeviceOptions,
    watts: Mapping[str, Mapping[str, float]],
    found: Found,
    measure: Measure,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The profile document. `watts`: declared, by device."""
    of = setup_pipeline() if pipeline is None else pipeline
    apps = applications_in(of, names)
    devices = {
        row["name"]: {
            "kind": row["kind"],
            "params": _choice(row),
        }
        for row in found.devices
        if row["kind"] != INLINE
    }
    points: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    power: list[dict[str, Any]] = []
    refused: dict[tuple[str, str], dict[str, Any]] = {}
    for i, length in enumerate(options.lengths):
        if progress is not None:
            progress(i, len(options.lengths))
        request = {
            "devices": devices,
            "modules": apps,
            "batch_pkts": list(options.batch_pkts),
            "ms": options.ms,
            "pair_batch_pkts": options.pair_batch_pkts if length == options.pair_bytes else 0,
            "power_ms": options.power_ms if length == max(options.lengths) else 0,
        }
        told = measure(with_length(of, length), request)
        points += [{"length": length, **point} for point in told["points"]]
        pairs += told["pairs"]
        power += told.get("power", [])
        refused |= {(row["module"], row["on"]): row for row in told["refused"]}
    modules = of["modules"]
    return {
        "version": DEVICES_VERSION,
        "label": "measured",
        "pipeline": "" if pipeline is None else str(of.get("name", "")),
        "cpu": cpu_name(),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "daemon": __version__,
        "without_opencl": found.without_opencl,
        "without_cuda": found.without_cuda,
        "devices": [
            {**row, **_declared(watts.get(row["name"])), **_measured_watts(row, power)}
            for row in found.devices
        ],
        "laws": _laws(points, modules),
        "beside": _beside(pairs, modules),
        "points": points,
        "refused": list(refused.values()),
    }


def _choice(row: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that select this device in a pipeline; identical GPUs by number."""
    if row["kind"] == CUDA:
        return {"device": str(row["number"])}
    return {key: row[key] for key in ("platform", "device") if key in row}


def _measured_watts(row: Mapping[str, Any], power: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The power of a device with a sensor: before use, open but idle, and for each module with the
    largest batches of the longest frames."""
    own = [entry for entry in power if entry["on"] == row["name"]]
    if not own:
        return {}
    watts: dict[str, Any] = {"off_w": row["off_w"]} if row.get("off_w") is not None else {}
    idle = [entry["watts"] for entry in own if not entry["module"]]
    active = {entry["module"]: entry["watts"] for entry in own if entry["module"]}
    if idle:
        watts["idle_w"] = idle[0]
    return {"measured": {**watts, "active_w": active}}


def _declared(watts: Mapping[str, float] | None) -> dict[str, Any]:
    return {} if watts is None else {"modelled": dict(watts)}


def _point(point: Mapping[str, Any], on: str) -> Point:
    """A device with memory of its own works on several batches at once: what each takes of it is
    the time between two ends. Elsewhere that time has the worker's in it."""
    works_on_several = on not in (INLINE, CORES)
    busy_ns = float(point["wall_ns"]) if works_on_several else 0.0
    return Point(point["batch_pkts"], point["pkt_bytes"], point["batch_ns"], busy_ns)


def _laws(points: Sequence[Mapping[str, Any]], modules: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for module, on in dict.fromkeys((p["module"], p["on"]) for p in points):
        own = [p for p in points if (p["module"], p["on"]) == (module, on)]
        # Packets that a module drops at once say nothing about its cost.
        if any(p["dropped_pkts"] for p in own):
            continue
        times = [_point(p, on) for p in own]
        fit = fit_and_judge(times)
        feed = fit_law([Point(p["batch_pkts"], p["pkt_bytes"], p["feed_ns"]) for p in own])
        spec = modules[module]
        rows.append(
            {
                "module": module, "kind": spec["kind"],
                "params_key": params_key(spec["kind"], spec.get("params", {})), "on": on,
                **fit.law.as_json(), "feed": feed.as_json(),
                "max_batch_pkts": max(point.n_pkts for point in times),
                "median_error": fit.median_error, "p95_error": fit.p95_error,
                "left_out": fit.n_left_out,
            }
        )  # fmt: skip
    return rows


def _beside(pairs: Sequence[Mapping[str, Any]], modules: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for pair in pairs:
        for own, other in (("one", "other"), ("other", "one")):
            rows.append(
                {
                    "kind": modules[pair[own]["module"]]["kind"], "on": pair[own]["on"],
                    "beside": modules[pair[other]["module"]]["kind"],
                    "on_other": pair[other]["on"], "factor": pair[f"{own}_factor"],
                }
            )  # fmt: skip
    return rows


def measure_with_daemon(options: DeviceOptions) -> Measure:
    """Measures on this machine."""

    def measure(pipeline: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
        n_places = len(request["modules"]) * (1 + len(request["devices"]))
        n_runs = n_places * (len(request["batch_pkts"]) + n_places)
        # Batches of slow applications take longer than the time per size, so allow for more.
        max_s = _START_S + 30 + 4 * n_runs * options.ms / 1e3
        with tempfile.TemporaryDirectory(prefix="bpd") as name:
            files = [Path(name) / part for part in ("request.json", "pipeline.json", "out.json")]
            for path, content in zip(files, (request, pipeline), strict=False):
                path.write_text(json.dumps(content), encoding="utf-8")
            command = [str(find_program()), "--profile-devices", "--profile-request", str(files[0])]
            if options.cores:
                command += ["--cores", options.cores]
            call_profiler([*command, str(files[1])], files[2], max_s, None)
            try:
                told: dict[str, Any] = json.loads(files[2].read_text(encoding="utf-8"))
            except ValueError as error:
                raise RunFailed(f"the profiler printed something unexpected: {error}") from error
        return told

    return measure
