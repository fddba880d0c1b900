# SPDX-License-Identifier: BSD-3-Clause
"""device_schema.py - the schema for devices: where modules run, and how that is decided."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..base import limits


class Strict(BaseModel):
    """No other keys, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DeviceUseModel(Strict):
    """Devices that a module runs on, and its batches there. A name or a list of names is enough."""

    on: list[str] = Field(
        min_length=1,
        description="names of devices, or `inline` for the worker; it starts on the first",
    )
    batch_pkts: Annotated[int, Field(ge=1, le=16384)] | None = Field(
        default=None, description="packets in a batch"
    )
    max_batch_pkts: Annotated[int, Field(ge=1, le=16384)] | None = Field(
        default=None, description="the most that batch_pkts may be set to at run time"
    )
    age_limit_ns: Annotated[int, Field(ge=0, le=limits.AGE_LIMIT_NS.most)] | None = Field(
        default=None, description="send a batch once its oldest packet has waited this long"
    )
    depth: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None, description="batches in flight at once"
    )
    idle: Annotated[str, Field(pattern="^(release|hold)$")] | None = Field(
        default=None,
        description="when the device has nothing to do: send a smaller batch, or hold it",
    )
    size_pkts: Annotated[int, Field(ge=1, le=1_048_576)] | None = Field(
        default=None, description="packets that its queue holds"
    )
    credit_pkts: Annotated[int, Field(ge=0, le=1_048_576)] | None = None
    backpressure: bool | None = Field(
        default=None, description="while its queue is full, the task before it polls no input"
    )


PolicyName = Annotated[str, Field(pattern="^(throughput|latency|power)$")]


class PlacedModel(Strict):
    """What to place one module for."""

    policy: PolicyName | None = Field(
        default=None, description="its policy, instead of the pipeline's"
    )
    budget_ns: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None,
        description="delay that it may add; by default half of the tightest SLO of its flows",
    )
    value: Annotated[float, Field(ge=0, le=1e9)] = Field(
        default=1.0, strict=False, description="value of a packet, if not all can be served"
    )


Times = list[list[Annotated[float, Field(ge=0, le=1e9, strict=False)]]]
Ascending = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=64)]


class LawTableModel(Strict):
    """Measured times: a list for each size, with a time for each length."""

    batch_pkts: Ascending
    pkt_bytes: Ascending
    ns: Times
    busy_ns: Times | None = Field(
        default=None, description="time of the device that a batch takes from others"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> LawTableModel:
        for points in (self.batch_pkts, self.pkt_bytes):
            if points != sorted(set(points)):
                raise ValueError("sizes and lengths must ascend")
        for rows in (self.ns, self.busy_ns if self.busy_ns is not None else self.ns):
            if [len(row) for row in rows] != [len(self.pkt_bytes)] * len(self.batch_pkts):
                raise ValueError("the table needs a list for each size, a time for each length")
        return self


class LawModel(Strict):
    """What a batch takes: batch_ns + pkt_ns a packet + byte_ns a byte + length_ns for each byte of
    the packets' length, once a batch; or what a table says."""

    batch_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0
    pkt_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0
    byte_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0
    length_ns: Annotated[float, Field(ge=0, le=1e9, strict=False)] = 0.0
    table: LawTableModel | None = None


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
    """How many times longer a batch takes beside another module. Devices by name, or `inline`."""

    kind: str = Field(description="kind of the module that is slowed down")
    on: str
    beside: str = Field(description="kind of the other module")
    on_other: str
    factor: Annotated[float, Field(ge=1, le=100, strict=False)]


class PlacementModel(Strict):
    """Moves modules between their devices at run time. A policy alone is enough."""

    policy: PolicyName = Field(
        default="power", description="the fewest watts, the least delay, or the most headroom"
    )
    watt_cap: Annotated[float, Field(ge=0, le=1e6, strict=False)] = Field(
        default=0.0, description="most watts of all devices together; 0: no cap"
    )
    period_ns: Annotated[int, Field(ge=10_000_000, le=10_000_000_000)] = Field(
        default=100_000_000, description="time between two decisions; events cause one at once"
    )
    inline_share: Annotated[float, Field(ge=0, le=1, strict=False)] = Field(
        default=0.5, description="share of a worker's time that placed modules may take"
    )
    inline_w: Annotated[float, Field(ge=0, le=1e6, strict=False)] = Field(
        default=0.0, description="watts of a worker that runs nothing else"
    )
    apps: dict[str, PlacedModel] = Field(default_factory=dict)
    laws: dict[str, LawModel] = Field(
        default_factory=dict,
        description="cost laws by kind of module on a worker; on a device as KIND@DEVICE",
    )
    slowdown: list[SlowdownModel] = Field(
        default_factory=list,
        description="slow-down of modules side by side, instead of the measured one",
    )
