# SPDX-License-Identifier: BSD-3-Clause
"""table2_configs.py - the pipelines of table 2, and execution modes to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...lang.load import has_pipeline
from ...lang.schema import EngineModel
from ..common.experiment import Setup

# The papers' stand-in for NFVnice: weighted fair queueing of modules, without a controller. And
# NFVnice as in its own paper: shares by rate x cost, watermarks, early drop.
WFQ, NFVNICE = "wfq", "nfvnice"
# The execution mode, and the controller.
EXPLICIT: dict[str, tuple[dict[str, str], str]] = {
    WFQ: ({"mode": "wfq"}, "null"),
    NFVNICE: ({"mode": "wfq", "backpressure": "early_drop"}, "nfvnice"),
}
_TRACE_PKTS = 200_000
_USERS = 4


@dataclass(frozen=True)
class Config:
    """One pipeline at one size, with its own SLO if the papers give one."""

    label: str
    pipeline: str
    params: tuple[tuple[str, Any], ...]
    slo_flow: str = "flow_*"
    slo_ns: int | None = None
    trace: tuple[tuple[str, Any], ...] = ()  # traffic to replay, see replay.py


def _config(label: str, pipeline: str, **params: Any) -> Config:
    return Config(label, pipeline, tuple(params.items()))


def _replayed(label: str, pipeline: str, n: int) -> Config:
    trace = (("kind", "backbone"), ("groups", n), ("packets", _TRACE_PKTS))
    return Config(label, pipeline, (("nexthops", n),), trace=trace)


CONFIGS = (
    *(_config(f"L2L3({n})", "l2l3", nexthops=n) for n in (1, 4, 8, 16)),
    *(_config(f"GW({n})", "gateway", nexthops=n) for n in (1, 8, 16, 64)),
    *(
        _config(f"VRF({m},{n})", "vrf", vrfs=m, nexthops=n, acl_last=1)
        for m, n in ((1, 1), (2, 4), (16, 4), (12, 8))
    ),
    Config("RC(16)", "robot_control", (("n", 16),), "robot", 35_000),
    *(
        Config(
            f"MGW({bearers},{_USERS})", "mgw", (("bearers", bearers), ("users", _USERS)), "*_0"
        )
        for bearers in (1, 2, 4, 8, 16)
    ),
    *(_replayed(f"*L2L3({n})", "l2l3", n) for n in (16, 32, 64)),
    *(_replayed(f"*GW({n})", "gateway", n) for n in (16, 32, 64)),
)  # fmt: skip


def configs(setup: Setup) -> list[Config]:
    """The configurations that can run: a daemon's generator cannot replay."""
    return [
        config
        for config in CONFIGS
        if has_pipeline(config.pipeline) and not (config.trace and setup.is_measured)
    ]


def promises(config: Config, slo_ns: int) -> tuple[str, ...]:
    """SLO settings; of several bearers the b-th has b + 1 times as long, and the last no SLO."""
    bearers = dict(config.params).get("bearers", 1)
    if bearers == 1:
        return (f"{config.slo_flow}.slo={slo_ns}ns",)
    return tuple(f"*_{b}.slo={slo_ns * (b + 1)}ns" for b in range(bearers - 1))


def executions() -> tuple[str, ...]:
    """The explicit execution modes, if the engine has them."""
    return tuple(EXPLICIT) if "execution" in EngineModel.model_fields else ()
