# SPDX-License-Identifier: BSD-3-Clause
"""table2_configs.py - the pipelines of table 2, and ways to run them beside the controllers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...lang.load import has_pipeline
from ...lang.schema import EngineModel
from ..common.experiment import Setup

# The papers' stand-in for NFVnice: weighted fair over modules, without a controller. And NFVnice as
# its own paper has it: shares by rate x cost, watermarks, early drop.
WFQ, NFVNICE = "wfq", "nfvnice"
# How the engine executes, and who decides.
EXPLICIT: dict[str, tuple[dict[str, str], str]] = {
    WFQ: ({"mode": "wfq"}, "null"),
    NFVNICE: ({"mode": "wfq", "backpressure": "early_drop"}, "nfvnice"),
}
_TRACE_PKTS = 200_000
_USERS = 4


@dataclass(frozen=True)
class Config:
    """One pipeline at one size; an SLO of its own where the papers give one."""

    label: str
    pipeline: str
    params: tuple[tuple[str, Any], ...]
    slo_flow: str = "flow_*"
    slo_ns: int | None = None
    trace: tuple[tuple[str, Any], ...] = ()  # replayed, see replay.py


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
    """Those that can run: a daemon's generator replays nothing."""
    return [
        config
        for config in CONFIGS
        if has_pipeline(config.pipeline) and not (config.trace and setup.is_measured)
    ]


def promises(config: Config, slo_ns: int) -> tuple[str, ...]:
    """Settings; of several bearers the b-th has b + 1 times as long, and the last no promise."""
    bearers = dict(config.params).get("bearers", 1)
    if bearers == 1:
        return (f"{config.slo_flow}.slo={slo_ns}ns",)
    return tuple(f"*_{b}.slo={slo_ns * (b + 1)}ns" for b in range(bearers - 1))


def executions() -> tuple[str, ...]:
    """Ways to run beside the controllers, where the engine has any."""
    return tuple(EXPLICIT) if "execution" in EngineModel.model_fields else ()
