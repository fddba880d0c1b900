# SPDX-License-Identifier: BSD-3-Clause
"""device_schema.py - the schema for devices: where modules run, and how that is decided."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ..base import limits


class Strict(BaseModel):
    """No other keys, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DeviceUseModel(Strict):
    """Where a module runs, and in what batches; a name alone will do, or a list of names."""

    on: list[str] = Field(
        min_length=1, description="devices, `inline` among them; it begins on the first"
    )
    batch_pkts: Annotated[int, Field(ge=1, le=16384)] | None = Field(
        default=None, description="packets of a batch that is sent there"
    )
    max_batch_pkts: Annotated[int, Field(ge=1, le=16384)] | None = Field(
        default=None, description="as many as batch_pkts may be raised to while it runs"
    )
    age_limit_ns: Annotated[int, Field(ge=0, le=limits.AGE_LIMIT_NS.most)] | None = Field(
        default=None, description="a batch is sent when its oldest packet has waited this long"
    )
    depth: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None, description="batches under way at once"
    )
    idle: Annotated[str, Field(pattern="^(release|hold)$")] | None = Field(
        default=None, description="send what there is when nothing is under way, or hold it"
    )
    size_pkts: Annotated[int, Field(ge=1, le=1_048_576)] | None = Field(
        default=None, description="packets that may wait in front of it"
    )
    credit_pkts: Annotated[int, Field(ge=0, le=1_048_576)] | None = None
    backpressure: bool | None = Field(
        default=None, description="while there is no room, the task before it polls no input"
    )


PolicyName = Annotated[str, Field(pattern="^(throughput|latency|power)$")]


class PlacedModel(Strict):
    """What one module with a device is placed for."""

    policy: PolicyName | None = Field(default=None, description="instead of the pipeline's")
    budget_ns: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None,
        description="of the delay, what it may take; else half of the tightest SLO on its way",
    )
    value: Annotated[float, Field(ge=0, le=1e9)] = Field(
        default=1.0, strict=False, description="of a packet, where not all can be served"
    )


class LawModel(Strict):
    """What a batch takes: batch_ns + pkt_ns a packet + byte_ns a byte + length_ns for each byte of
    the packets' length, once a batch."""

    batch_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0
    pkt_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0
    byte_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0
    length_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0


Watts = Annotated[float, Field(ge=0, le=10_000, strict=False)]


class ThreadsModel(Strict):
    """Parameters of devices (src/offload/devices.cc)."""

    laws: dict[str, LawModel] = Field(default_factory=dict)
    threads: Annotated[int, Field(ge=0, le=16)] = 1
    cores: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    off_w: Watts = 0.0
    idle_w: Watts = 0.0
    active_w: Watts = 0.0


class CoresModel(ThreadsModel):
    """Of kind cores: a thread at least."""

    threads: Annotated[int, Field(ge=1, le=16)] = 1


class SimulatedModel(ThreadsModel):
    """Of kind simulated."""

    faults: dict[str, int] = Field(default_factory=dict)


class CudaModel(ThreadsModel):
    """Of kind cuda."""

    threads: Annotated[int, Field(ge=0, le=1)] = 1
    check_one_in: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    device: str = ""


class OpenClModel(CudaModel):
    """Of kind opencl."""

    platform: str = ""


DEVICE_PARAMS: dict[str, type[ThreadsModel]] = {
    "cores": CoresModel,
    "simulated": SimulatedModel,
    "opencl": OpenClModel,
    "cuda": CudaModel,
}


class SlowdownModel(Strict):
    """How many times longer a batch takes while another runs; devices by name, or `inline`."""

    kind: str = Field(description="of the module that is slowed")
    on: str
    beside: str = Field(description="kind of the other module")
    on_other: str
    factor: Annotated[float, Field(ge=1, le=100, strict=False)]


class PlacementModel(Strict):
    """Who decides, while traffic flows, where modules with devices run; a policy alone will do."""

    policy: PolicyName = Field(
        default="power", description="the fewest watts, the least delay, or the most room"
    )
    watt_cap: Annotated[float, Field(ge=0, le=1e6, strict=False)] = Field(
        default=0.0, description="of all devices together; 0: none"
    )
    period_ns: Annotated[int, Field(ge=10_000_000, le=10_000_000_000)] = Field(
        default=100_000_000, description="how often it decides, events apart"
    )
    inline_share: Annotated[float, Field(ge=0, le=1, strict=False)] = Field(
        default=0.5, description="of a worker's time, what modules that run on it may take"
    )
    inline_w: Annotated[float, Field(ge=0, le=1e6, strict=False)] = Field(
        default=0.0, description="what a worker draws that does nothing else"
    )
    apps: dict[str, PlacedModel] = Field(default_factory=dict)
    laws: dict[str, LawModel] = Field(
        default_factory=dict, description="on a worker, by kind of module; as KIND@DEVICE there"
    )
    slowdown: list[SlowdownModel] = Field(
        default_factory=list, description="of modules side by side, instead of what was measured"
    )
