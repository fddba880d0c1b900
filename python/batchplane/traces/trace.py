# SPDX-License-Identifier: BSD-3-Clause
"""trace.py - recorded traffic as (time, size, flow), in chunks of numpy arrays.

Packets of a flow share addresses, protocol and ports (fragments: addresses and protocol), and also
destination MAC address and VLAN tags, since these affect routes too. Flows are numbered in order of
appearance. The user's rules join such flows under a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..base.problems import BadInput, Problem
from .flows import Rule, five_tuple_of, flow_bytes
from .pcap_file import RawPacket, read_packets

FCS_BYTES = 4  # sizes are on the wire; captures lack the frame's checksum
CHUNK_PKTS = 1 << 16
MAX_FLOWS = 1 << 20


@dataclass(frozen=True)
class Chunk:
    """Some packets in order; times count from the trace's first packet."""

    time_ns: NDArray[np.int64]
    size_bytes: NDArray[np.int32]  # on the wire, checksum included
    flow: NDArray[np.int32]


@dataclass(frozen=True)
class Trace(Chunk):
    """A whole trace in memory."""

    names: list[str]  # of the flows
    first_frames: list[bytes]  # of each flow, padded to their full length
    start_ns: int  # time of the first packet, since 1970


class TraceReader:
    """Iterates over a file in chunks; `names` and `first_frames` grow as it is read.

    Memory is bounded by one chunk and the flows, whatever the length of the file.
    """

    def __init__(self, path: Path | str, rules: Sequence[Rule] = (), may_jump: bool = False):
        """`may_jump`: packets out of order are passed on instead of rejected."""
        self.path = Path(path)
        self.names: list[str] = list(dict.fromkeys(rule.name for rule in rules))
        self.first_frames: list[bytes] = [b""] * len(self.names)
        self.start_ns = 0
        self._rules = list(rules)
        self._may_jump = may_jump
        self._flows: dict[bytes, int] = {}  # by flow_bytes()

    def __iter__(self) -> Iterator[Chunk]:
        times: list[int] = []
        sizes: list[int] = []
        flows: list[int] = []
        last_ns = 0
        known = self._flows
        for packet in read_packets(self.path):
            if packet.number == 1:
                self.start_ns = last_ns = packet.time_ns
            if packet.time_ns < last_ns and not self._may_jump:
                raise self._bad(
                    f"packet {packet.number} is {last_ns - packet.time_ns} ns older than the "
                    "packet before it",
                    "sort the packets by time: reordercap IN OUT",
                )
            last_ns = packet.time_ns
            key = flow_bytes(packet.frame)
            flow = known.get(key)
            if flow is None:
                flow = known[key] = self._new_flow(packet)
            times.append(packet.time_ns - self.start_ns)
            sizes.append(packet.len_bytes + FCS_BYTES)
            flows.append(flow)
            if len(times) == CHUNK_PKTS:
                yield _chunk(times, sizes, flows)
                times, sizes, flows = [], [], []
        if not known:
            raise self._bad("it contains no packets")
        if times:
            yield _chunk(times, sizes, flows)

    def _new_flow(self, packet: RawPacket) -> int:
        five_tuple = five_tuple_of(packet.frame)
        frame = packet.frame + bytes(max(0, packet.len_bytes - len(packet.frame)))
        if self._rules:
            for rule in self._rules:
                if rule.takes(five_tuple):
                    flow = self.names.index(rule.name)
                    self.first_frames[flow] = self.first_frames[flow] or frame
                    return flow
            raise self._bad(
                f"packet {packet.number} ({five_tuple}) belongs to no traffic flow",
                "add a rule for it; a rule without any prefix takes all remaining packets",
            )
        if len(self.names) == MAX_FLOWS:
            raise self._bad(
                f"packet {packet.number} is of more than {MAX_FLOWS:,} different flows",
                "join them by rules",
            )
        self.names.append(str(five_tuple))
        self.first_frames.append(frame)
        return len(self.names) - 1

    def _bad(self, message: str, fix: str = "") -> BadInput:
        return BadInput(Problem(message, str(self.path), fix=fix))


def read_trace(path: Path | str, rules: Sequence[Rule] = (), is_sorted: bool = False) -> Trace:
    """Reads the whole file: 16 bytes of memory per packet, 24 while the columns are put together.

    `is_sorted` puts the packets in order.
    """
    reader = TraceReader(path, rules, may_jump=is_sorted)
    times: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int32]] = []
    flows: list[NDArray[np.int32]] = []
    for chunk in reader:
        times.append(chunk.time_ns)
        sizes.append(chunk.size_bytes)
        flows.append(chunk.flow)
    del chunk  # exists, because an empty file is rejected
    time_ns = np.concatenate(times)
    times.clear()
    size_bytes = np.concatenate(sizes)
    sizes.clear()
    flow = np.concatenate(flows)
    flows.clear()
    start_ns = reader.start_ns
    if is_sorted:
        order = np.argsort(time_ns, kind="stable")
        time_ns, size_bytes, flow = time_ns[order], size_bytes[order], flow[order]
        start_ns += int(time_ns[0])
        time_ns = time_ns - time_ns[0]
    return Trace(time_ns, size_bytes, flow, reader.names, reader.first_frames, start_ns)


def _chunk(times: list[int], sizes: list[int], flows: list[int]) -> Chunk:
    return Chunk(np.array(times, np.int64), np.array(sizes, np.int32), np.array(flows, np.int32))
