# SPDX-License-Identifier: BSD-3-Clause
"""placement.py - what a daemon is told of modules on their worker before it places them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.problems import BadInput
from ..costs.cache import cached_costs
from ..costs.costs import PRIOR, CostsFile, load_costs, resolve
from ..costs.devices import CORES, INLINE, DeviceProfile, kept_device_profile


def with_laws(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a law for each kind of module that has a device and none by itself.

    On the worker (KIND) and on threads (KIND@DEVICE), of what is kept for this machine: the profile
    of devices if it knows these very parameters, else the pipeline's costs, else the profile of
    devices, else the built-in costs. What nobody has measured is left out: the daemon begins with a
    guess. It measures devices with memory of their own itself. It corrects all of them.
    """
    placement = pipeline.get("placement")
    kinds = {
        str(module["kind"]): name
        for name, module in pipeline.get("modules", {}).items()
        if "device" in module
    }
    if placement is None or not kinds:
        return dict(pipeline)
    laws = dict(placement.get("laws", {}))
    kept = cached_costs(pipeline)
    profile = kept_device_profile(pipeline).profile
    threads = [
        name for name, device in pipeline.get("devices", {}).items() if device["kind"] == CORES
    ]
    for kind, name in kinds.items():
        if kind in laws:
            continue
        module = pipeline["modules"][name]
        measured = _measured(profile, kind, module.get("params", {}), INLINE, kept is not None)
        law = measured or _cost(pipeline, name, kept or load_costs(PRIOR))
        if law is not None:
            laws[kind] = law
        on_threads = _measured(profile, kind, module.get("params", {}), CORES, kept is not None)
        for device in threads if on_threads else ():
            laws.setdefault(f"{kind}@{device}", on_threads)
    return {**pipeline, "placement": {**placement, "laws": laws}}


def _measured(
    profile: DeviceProfile | None,
    kind: str,
    params: Mapping[str, Any],
    device_kind: str,
    must_be_same: bool,
) -> dict[str, float] | None:
    found = None
    if profile is not None:
        found = profile.law(kind, params, profile.device_for(device_kind, {}))
    if found is None or (must_be_same and not found[1]):
        return None
    return found[0].law.as_json()


def _cost(pipeline: Mapping[str, Any], name: str, costs: CostsFile) -> dict[str, float] | None:
    alone = {**pipeline, "modules": {name: pipeline["modules"][name]}}
    try:
        law = resolve(alone, costs).modules[name]
    except BadInput:
        return None
    return {"batch_ns": law.cost_per_batch_ns, "pkt_ns": law.cost_per_pkt_ns}
