# SPDX-License-Identifier: BSD-3-Clause
"""stats.py - the properties of a capture: sizes, flows, destinations, bursts. Reads a stream."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.problems import BadInput, Problem
from .flows import flow_bytes
from .pcap_file import read_packets
from .trace import FCS_BYTES

# Memory is bounded by the flows; a one-minute capture of a backbone has some two million.
MAX_FLOWS = 1 << 22
_TOP_SHARE = 0.01
_MIN_OF_TAIL = 32  # flows with at least this many packets are the tail
_MIN_OF_RANK = 10  # destinations with fewer flows are noise
_IPV4 = b"\x08\x00"


@dataclass(frozen=True)
class TraceStats:
    """Statistics of a whole capture; sizes are on the wire, with checksum."""

    packets: int
    bytes: int
    duration_s: float
    rate_pps: float
    rate_bps: float
    size_mean_bytes: float
    size_64_share: float
    size_full_share: float  # 1500 bytes and more
    flows: int
    flow_mean_pkts: float
    flow_median_pkts: float
    flow_max_pkts: int
    flow_top_share: float  # share of packets in the largest 1 % of flows
    flow_tail_index: float | None  # of a power law fitted to flows of 32 packets and more
    burstiness: float  # mean number of consecutive packets of a flow
    destinations: int
    destination_top_share: float  # of packets
    zipf: float | None  # exponent by rank of flows per destination

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def trace_stats(path: Path | str) -> TraceStats:
    """Raises BadInput if the file is no capture, is truncated, or is out of order."""
    flows: dict[bytes, list[int]] = {}  # [packets, destination]
    sizes = np.zeros(1 << 16, np.int64)
    first_ns = last_ns = n = n_bytes = runs = 0
    before = b""
    for packet in read_packets(Path(path)):
        n += 1
        if n == 1:
            first_ns = last_ns = packet.time_ns
        if packet.time_ns < last_ns:
            message = f"packet {n} is {last_ns - packet.time_ns} ns older than the one before it"
            raise BadInput(Problem(message, str(path), fix="reordercap IN OUT"))
        last_ns = packet.time_ns
        n_bytes += packet.len_bytes + FCS_BYTES
        sizes[min(packet.len_bytes + FCS_BYTES, len(sizes) - 1)] += 1
        key = flow_bytes(packet.frame)
        if key != before:
            runs += 1
            before = key
        flow = flows.get(key)
        if flow is None:
            if len(flows) == MAX_FLOWS:
                message = f"packet {n} is of more than {MAX_FLOWS:,} different flows"
                raise BadInput(Problem(message, str(path), fix="cut it: editcap -r IN OUT 1-N"))
            flows[key] = [1, _destination(packet.frame)]
        else:
            flow[0] += 1
    if n == 0:
        raise BadInput(Problem("it contains no packets", str(path)))
    return _summary(flows, sizes, n, n_bytes, runs, (last_ns - first_ns) / 1e9)


def _destination(frame: bytes) -> int:
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8") and at < 28:
        at += 4
    if frame[at : at + 2] != _IPV4 or len(frame) < at + 22:
        return -1
    return int.from_bytes(frame[at + 18 : at + 22], "big")


def _summary(
    flows: dict[bytes, list[int]], sizes: Any, n: int, n_bytes: int, runs: int, seconds: float
) -> TraceStats:
    columns = np.array(list(flows.values()), np.int64)
    packets = np.sort(columns[:, 0])[::-1]
    addresses, place, per_destination = np.unique(
        columns[:, 1], return_inverse=True, return_counts=True
    )
    is_known = addresses >= 0
    by_destination = np.bincount(place, weights=columns[:, 0])[is_known]
    top = max(1, math.ceil(_TOP_SHARE * len(packets)))
    return TraceStats(
        packets=n,
        bytes=n_bytes,
        duration_s=seconds,
        rate_pps=(n - 1) / seconds if seconds else 0.0,
        rate_bps=8 * n_bytes / seconds if seconds else 0.0,
        size_mean_bytes=n_bytes / n,
        size_64_share=float(sizes[:65].sum()) / n,
        size_full_share=float(sizes[1500:].sum()) / n,
        flows=len(packets),
        flow_mean_pkts=n / len(packets),
        flow_median_pkts=float(np.median(packets)),
        flow_max_pkts=int(packets[0]),
        flow_top_share=float(packets[:top].sum()) / n,
        flow_tail_index=tail_index_of(packets),
        burstiness=n / runs,
        destinations=int(is_known.sum()),
        destination_top_share=float(by_destination.max()) / n if len(by_destination) else 0.0,
        zipf=zipf_of(per_destination[is_known]),
    )


def tail_index_of(packets: Any, least: int = _MIN_OF_TAIL) -> float | None:
    """Hill's estimate over flows of at least `least` packets; None for fewer than 20 flows."""
    tail = packets[packets >= least].astype(float)
    if len(tail) < 20 or tail.max() == least:
        return None
    # Counts are integers: the continuous law begins half a packet below the least.
    return float(len(tail) / np.log(tail / (least - 0.5)).sum())


def zipf_of(counts: Any) -> float | None:
    """Slope of log count over log rank, with ranks evenly spaced on the logarithmic axis."""
    ordered = np.sort(counts)[::-1]
    ordered = ordered[ordered >= _MIN_OF_RANK]
    if len(ordered) < 10:
        return None
    ranks = np.unique(np.geomspace(1, len(ordered), 40).astype(int))
    slope, _ = np.polyfit(np.log(ranks), np.log(ordered[ranks - 1]), 1)
    return float(-slope)
