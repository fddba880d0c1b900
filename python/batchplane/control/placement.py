# SPDX-License-Identifier: BSD-3-Clause
"""placement.py - what a daemon is told about modules and devices before it places modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.problems import BadInput, Problem
from ..costs.cache import cached_costs
from ..costs.costs import PRIOR, CostsFile, load_costs, resolve
from ..costs.devices import CORES, INLINE, OWN_MEMORY, DeviceProfile, kept_device_profile


def with_laws(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """Adds a law for each kind of module that has a device but no law, and the costs that such
    modules cause each other.

    Laws for the worker (KIND) and for threads (KIND@DEVICE) come from the first source for this
    machine that has them: the device profile if it is for exactly these parameters, the pipeline's
    costs, any device profile, the built-in costs. Kinds that were never measured are left out: the
    daemon starts with a guess. Devices with memory of their own have a law here if they were
    profiled with these parameters; else the daemon measures them itself. It corrects all laws.
    """
    kinds = _placed_kinds(pipeline)
    if not kinds:
        return dict(pipeline)
    placement = pipeline["placement"]
    laws = dict(placement.get("laws", {}))
    kept = cached_costs(pipeline)
    profile = kept_device_profile(pipeline).profile
    devices = {
        name: device
        for name, device in pipeline.get("devices", {}).items()
        if device["kind"] == CORES or device["kind"] in OWN_MEMORY
    }
    origins: dict[str, list[str]] = {}
    for kind, module_name in kinds.items():
        if kind in laws:
            origins.setdefault("the pipeline", []).append(kind)
            continue
        module = pipeline["modules"][module_name]
        params = module.get("params", {})
        law = _measured(profile, kind, params, (INLINE, {}), kept is not None)
        origin = _told(profile) if law is not None and profile is not None else ""
        if law is None:
            law = _cost(pipeline, module_name, kept or load_costs(PRIOR))
            origin = "the pipeline's profile of costs" if kept is not None else "built-in costs"
        if law is not None:
            laws[kind] = law
        origins.setdefault(origin if law is not None else "a guess", []).append(kind)
        for name, device in devices.items():
            place = (str(device["kind"]), device.get("params", {}))
            must_be_same = kept is not None or device["kind"] in OWN_MEMORY
            there = _measured(profile, kind, params, place, must_be_same)
            if there is not None:
                laws.setdefault(f"{kind}@{name}", there)
    placed = {**placement, "laws": laws}
    if "slowdown" not in placement and profile is not None:
        placed["slowdown"] = _slowdowns(pipeline, profile, kinds)
        if n := len(placed["slowdown"]):
            told = f"{n} slow-down" + ("s" if n > 1 else "")
            origins.setdefault(_told(profile), []).append(told)
    declared = dict(pipeline.get("devices", {}))
    for name, device in declared.items():
        params = device.get("params", {})
        if profile is not None and (watts := profile.watts(str(device["kind"]), params)):
            declared[name] = {**device, "params": {**params, **watts}}
            origins.setdefault(_told(profile), []).append(f"watts of {name}")
    lines = [f"{', '.join(names)} from {origin}" for origin, names in origins.items()]
    given = {"devices": declared} if declared else {}
    return {**pipeline, **given, "placement": {**placed, "laws_origin": "; ".join(lines)}}


def passed_over(pipeline: Mapping[str, Any]) -> Problem | None:
    """Warns of the device profile that placement would start with, if it cannot be used."""
    return kept_device_profile(pipeline).warning() if _placed_kinds(pipeline) else None


def _placed_kinds(pipeline: Mapping[str, Any]) -> dict[str, str]:
    """One module of each kind that is placed."""
    if pipeline.get("placement") is None:
        return {}
    return {
        str(module["kind"]): name
        for name, module in pipeline.get("modules", {}).items()
        if "device" in module
    }


def _told(profile: DeviceProfile) -> str:
    return f"the profile of devices of {profile.date or 'an unknown date'} ({profile.file})"


def _slowdowns(
    pipeline: Mapping[str, Any], profile: DeviceProfile, kinds: Mapping[str, str]
) -> list[dict[str, Any]]:
    places: dict[str, tuple[str, Mapping[str, Any]]] = {INLINE: (INLINE, {})}
    for name, device in pipeline.get("devices", {}).items():
        places[name] = (str(device["kind"]), device.get("params", {}))
    return profile.slowdowns(kinds, places)


def _measured(
    profile: DeviceProfile | None,
    kind: str,
    params: Mapping[str, Any],
    device: tuple[str, Mapping[str, Any]],
    must_be_same: bool,
) -> dict[str, Any] | None:
    """The law on a device of this kind with these parameters."""
    found = None
    if profile is not None:
        found = profile.law(kind, params, profile.device_for(*device))
    if found is None or (must_be_same and not found[1]):
        return None
    return found[0].law.as_json()


def _cost(pipeline: Mapping[str, Any], name: str, costs: CostsFile) -> dict[str, Any] | None:
    alone = {**pipeline, "modules": {name: pipeline["modules"][name]}}
    try:
        law = resolve(alone, costs).modules[name]
    except BadInput:
        return None
    return {"batch_ns": law.cost_per_batch_ns, "pkt_ns": law.cost_per_pkt_ns}
