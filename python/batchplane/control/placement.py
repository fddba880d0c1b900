# SPDX-License-Identifier: BSD-3-Clause
"""placement.py - what a daemon is told of modules on their worker before it places them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.problems import BadInput
from ..costs.cache import cached_costs
from ..costs.costs import PRIOR, load_costs, resolve


def with_laws(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a law for each kind of module that has a device and none by itself.

    From the profile that is kept for the pipeline, else the built-in costs. What nobody has
    measured is left out: the daemon begins with a guess. It corrects all of them.
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
    costs = cached_costs(pipeline) or load_costs(PRIOR)
    for kind, name in kinds.items():
        if kind in laws:
            continue
        alone = {**pipeline, "modules": {name: pipeline["modules"][name]}}
        try:
            law = resolve(alone, costs).modules[name]
        except BadInput:
            continue
        laws[kind] = {"batch_ns": law.cost_per_batch_ns, "pkt_ns": law.cost_per_pkt_ns}
    return {**pipeline, "placement": {**placement, "laws": laws}}
