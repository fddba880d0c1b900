# SPDX-License-Identifier: BSD-3-Clause
"""session_schema.py - the shape of a mobile user's session as pydantic models, and its JSON schema.

The daemon checks sessions itself, more strictly than a schema can; this is for editors and for
programs that write sessions. A test compares the keys with those that the daemon knows.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class SchemaOf(StrEnum):
    """What `batchplane schema` can describe."""

    PIPELINE = "pipeline"
    SESSIONS = "sessions"


MAX_RULES = 255  # of each kind

Id = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
Teid = Annotated[int, Field(ge=1, le=0xFFFFFFFF)]
Qfi = Annotated[int, Field(ge=0, le=63)]
Bps = Annotated[int, Field(ge=1000, le=10**12)]
GuaranteedBps = Annotated[int, Field(ge=0, le=10**12)]
Threshold = Annotated[int, Field(ge=0, le=10**18)]


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PdrModel(_Rule):
    """Packet detection rule."""

    id: int = Field(ge=0, le=0xFFFF)
    source: Literal["access", "core"] = Field(description="uplink (with teid), or downlink")
    precedence: Id = Field(default=255, description="lower is checked first")
    teid: Teid = Field(default=1, description="uplink: the tunnel endpoint at the gateway")
    qfi: Qfi = Field(default=0, description="uplink: QFI of the packets; without: any")
    filters: list[str] = Field(
        default_factory=list, max_length=MAX_RULES, description="flow descriptions"
    )
    far: Id
    qers: list[Id] = Field(default_factory=list, max_length=2)
    urrs: list[Id] = Field(default_factory=list, max_length=8)
    bearer: int = Field(
        default=0, ge=0, le=4095, description="number that later modules can branch on"
    )


class FarModel(_Rule):
    """Forwarding action rule."""

    id: Id
    action: Literal["forward", "drop", "buffer"] = "forward"
    notify: bool = Field(default=True, description="report the first packet that is buffered")
    teid: Teid = Field(default=1, description="TEID of the tunnel to send into")
    peer: str = Field(default="", description="IPv4 or IPv6 address of the tunnel's other end")


class QerModel(_Rule):
    """QoS enforcement rule."""

    id: Id
    qfi: Qfi = Field(default=0, description="QFI to write into the tunnel header")
    gate_up: Literal["open", "closed"] = "open"
    gate_down: Literal["open", "closed"] = "open"
    mbr_up_bps: Bps = Field(default=1000, description="none: no limit")
    mbr_down_bps: Bps = Field(default=1000, description="none: no limit")
    burst_ns: int = Field(default=20_000_000, ge=1000, le=10**10)
    shape: Literal["none", "down", "up", "both"] = Field(
        default="none",
        description="which of its rates are shaped by a scheduler instead of policed",
    )
    gbr_up_bps: GuaranteedBps = Field(default=0, description="guaranteed bit rate, if it is shaped")
    gbr_down_bps: GuaranteedBps = Field(
        default=0, description="guaranteed bit rate, if it is shaped"
    )
    priority: int = Field(
        default=0, ge=0, le=7, description="priority among shaped traffic; 7 goes first"
    )
    five_qi: int | None = Field(
        default=None,
        ge=1,
        le=255,
        alias="5qi",
        description="standardised 5QI: says the priority where none is given",
    )


class UrrModel(_Rule):
    """Usage reporting rule: thresholds (0: none), quotas (none: no limit; 0: nothing passes)."""

    id: Id
    volume_bytes: Threshold = Field(default=0, description="threshold, both directions")
    up_bytes: Threshold = Field(default=0, description="threshold")
    down_bytes: Threshold = Field(default=0, description="threshold")
    time_ns: Threshold = Field(default=0, description="threshold; 1 ms or more")
    quota_bytes: Threshold = Field(default=0, description="quota, both directions")
    up_quota_bytes: Threshold = Field(default=0, description="uplink quota")
    down_quota_bytes: Threshold = Field(default=0, description="downlink quota")
    quota_ns: Threshold = Field(default=0, description="time quota, counted from the first packet")


class BarModel(_Rule):
    """Buffering action rule."""

    hold_pkts: int = Field(
        default=64, ge=1, le=65535, description="packets that are held while a FAR buffers"
    )


class SessionModel(_Rule):
    """A line of a session file: one user's session in PFCP's terms (3GPP TS 29.244)."""

    seid: int = Field(ge=1, le=(1 << 63) - 1)
    ue: str = Field(default="", description="the user's IPv4 address")
    ue6: str = Field(default="", description="the user's IPv6 prefix, a /64")
    group: int = Field(default=0, ge=0, le=4095)
    pdrs: list[PdrModel] = Field(min_length=1, max_length=MAX_RULES)
    fars: list[FarModel] = Field(default_factory=list, max_length=MAX_RULES)
    qers: list[QerModel] = Field(default_factory=list, max_length=MAX_RULES)
    urrs: list[UrrModel] = Field(default_factory=list, max_length=MAX_RULES)
    bar: BarModel = Field(default_factory=BarModel)


def session_schema() -> dict[str, Any]:
    """JSON schema of a session. The descriptions say what a missing key means."""
    schema = SessionModel.model_json_schema()
    for definition in [schema, *schema["$defs"].values()]:
        for rule in definition["properties"].values():
            rule.pop("default", None)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Batchplane session"
    return schema
