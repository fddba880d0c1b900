# SPDX-License-Identifier: BSD-3-Clause
"""device_case.py - turns a pipeline into a placement problem: modules, rates, devices, laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.problems import BadInput, Problem
from ..costs.batch_law import BatchLaw
from ..costs.batch_laws import BatchLaws
from ..costs.costs import CostsFile, resolve
from ..costs.devices import CORES, INLINE, WATT_KEYS, DeviceProfile
from .devices import BUDGET_SHARE, UNPROMISED_NS, DeviceCase, PlacedApp, PlacedDevice

KINDS = ("esp_encrypt", "esp_decrypt", "dpi", "digest", "classify")
_DEFAULT_BATCH_PKTS = 256  # Stage::kDefaultBatchPkts


def stage_names(pipeline: Mapping[str, Any]) -> list[str]:
    """Modules with `device`; without any, those that could have one."""
    modules = pipeline["modules"]
    stages = [name for name, module in modules.items() if "device" in module]
    return stages or [name for name, module in modules.items() if module["kind"] in KINDS]


def devices_of(
    pipeline: Mapping[str, Any], profile: DeviceProfile | None
) -> dict[str, dict[str, Any]]:
    """The pipeline's devices; without any, the measured ones, or at least a thread."""
    declared = pipeline.get("devices", {})
    if declared:
        return {str(name): dict(device) for name, device in declared.items()}
    rows: Sequence[Mapping[str, Any]] = ({"name": CORES, "kind": CORES},)
    if profile is not None:
        rows = profile.devices
    return {
        str(row["name"]): {
            "kind": row["kind"],
            "params": {
                **{key: row[key] for key in ("platform", "device") if key in row},
                **row.get("modelled", {}),
            },
        }
        for row in rows
        if row["kind"] != INLINE
    }


def _declared_w(profile: DeviceProfile | None, device: str) -> float:
    """The device's active power that was declared when the profile was measured."""
    rows = profile.devices if profile is not None else ()
    return next(
        (
            float(r["modelled"]["active_w"])
            for r in rows
            if r["name"] == device and r.get("modelled")
        ),
        0.0,
    )


def make_case(
    pipeline: Mapping[str, Any],
    shares: Mapping[str, float],
    offered_pps: float,
    pkt_bytes: Mapping[str, float],
    slo_ns: Mapping[str, float],
    profile: DeviceProfile | None,
    costs: CostsFile,
    are_own_costs: bool,
) -> tuple[DeviceCase, list[str]]:
    """The problem, and remarks about it. `shares`: of the offered packets, by module; `pkt_bytes`:
    by module; `are_own_costs`: they were measured for this pipeline."""
    placement = pipeline.get("placement") or {}
    devices = devices_of(pipeline, profile)
    names = stage_names(pipeline)
    inline_w = placement.get("inline_w", _declared_w(profile, INLINE))
    placed = [PlacedDevice(INLINE, INLINE, active_w=float(inline_w))]
    for name, device in devices.items():
        params = device.get("params", {})
        read = {} if profile is None else profile.watts(str(device["kind"]), params)
        watts = (float({**read, **params}.get(key, 0)) for key in WATT_KEYS)
        placed.append(PlacedDevice(name, str(device["kind"]), *watts))
    apps = [
        _app(pipeline, name, shares[name] * offered_pps, pkt_bytes[name], slo_ns, tuple(devices))
        for name in names
        if shares.get(name, 0) > 0
    ]
    case = DeviceCase(
        apps, placed, {}, [], float(placement.get("inline_share", 0.5)),
        float(placement.get("watt_cap", 0)),
    )  # fmt: skip
    laws = BatchLaws(pipeline, profile, lambda name: _cost(pipeline, name, costs), are_own_costs)
    told = []
    for app in apps:
        for place in (device for device in placed if device.name in app.on):
            params = devices.get(place.name, {}).get("params", {})
            law = laws.of(app.name, place.kind, params)
            if law is None:
                told.append(f"{app.name} on {place.name}: nobody has measured it, left out")
            else:
                case.laws[app.name, place.name] = law
    case.beside = _beside(case, devices, profile)
    silent = [name for name in names if shares.get(name, 0) <= 0]
    if silent:
        told.append(f"no packet comes to {', '.join(silent)}: left out")
    return case, told


def _cost(pipeline: Mapping[str, Any], name: str, costs: CostsFile) -> tuple[BatchLaw, str] | None:
    """The law of a module on its worker, and its origin."""
    alone = {**pipeline, "modules": {name: pipeline["modules"][name]}}
    try:
        law = resolve(alone, costs).modules[name]
    except BadInput:
        return None
    return BatchLaw(law.cost_per_batch_ns, law.cost_per_pkt_ns), f"costs: {costs.label}"


def _app(
    pipeline: Mapping[str, Any],
    name: str,
    rate_pps: float,
    pkt_bytes: float,
    slo_ns: Mapping[str, float],
    devices: Sequence[str],
) -> PlacedApp:
    module = pipeline["modules"][name]
    stages = set(stage_names(pipeline))
    least_slo, budget = 0.0, 0.0
    for flow in pipeline.get("flows", []):
        slo = float(slo_ns.get(str(flow["name"]), 0))
        path = [str(step).partition(":")[0] for step in flow["path"]]
        if slo <= 0 or name not in path:
            continue
        share = BUDGET_SHARE * slo / sum(step in stages for step in path)
        budget = min(budget or share, share)
        least_slo = min(least_slo or slo, slo)
    use = module.get("device", {"on": [INLINE, *devices], "max_batch_pkts": 16_384})
    own = (pipeline.get("placement") or {}).get("apps", {}).get(name, {})
    most = max(use.get("max_batch_pkts") or 0, use.get("batch_pkts") or _DEFAULT_BATCH_PKTS)
    return PlacedApp(
        name, str(module["kind"]), rate_pps, pkt_bytes,
        float(own.get("budget_ns") or budget or UNPROMISED_NS), least_slo, tuple(use["on"]), most,
        float(own.get("value", 1.0)), str(own.get("policy") or ""),
    )  # fmt: skip


def _beside(
    case: DeviceCase, devices: Mapping[str, Mapping[str, Any]], profile: DeviceProfile | None
) -> list[dict[str, Any]]:
    """The slow-downs that were measured side by side, for modules of those kinds."""
    if profile is None:
        return []
    places = {d.name: (d.kind, devices.get(d.name, {}).get("params", {})) for d in case.devices}
    measured = profile.slowdowns({app.kind for app in case.apps}, places)
    return [
        {
            "app": one.name, "on": row["on"], "beside": other.name,
            "on_other": row["on_other"], "factor": row["factor"],
        }
        for row in measured
        for one in case.apps
        for other in case.apps
        if one is not other and (one.kind, other.kind) == (row["kind"], row["beside"])
    ]  # fmt: skip


def require_stages(pipeline: Mapping[str, Any], file: str) -> None:
    """Raises BadInput if no module can run on a device."""
    if not stage_names(pipeline):
        fix = f"only {', '.join(KINDS)} can run on one"
        raise BadInput(Problem("no module has a device", file, "modules", fix))
