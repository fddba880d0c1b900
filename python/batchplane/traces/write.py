# SPDX-License-Identifier: BSD-3-Clause
"""write.py - writes a generated trace as a capture: IPv4 frames with TCP or UDP.

As in published captures only the start of each frame is stored; the record has its full length.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..base.problems import BadInput, Problem
from .make import MadeChunk, TraceMaker
from .model import TraceModel
from .pcap_file import ETHERNET
from .trace import FCS_BYTES

SNAP_BYTES = 60  # the shortest frame without its checksum: contains all headers
_RECORD_BYTES = 16 + SNAP_BYTES
_START_S = 1_700_000_000
_TCP, _UDP = 6, 17
_PORTS = np.array([80, 443, 53, 22, 25, 123, 8080, 5060], np.uint16)
Bytes = NDArray[np.uint8]


def write_trace(
    path: Path, model: TraceModel, progress: Callable[[int], None] | None = None
) -> TraceMaker:
    """Writes the whole trace, chunk by chunk. Raises BadInput, and removes a partial file then."""
    maker = TraceMaker(model)
    mac = _mac(model.dst_mac)
    made = False
    try:
        with path.open("wb") as file:
            made = True
            _write_head(file)
            for chunk in maker:
                file.write(records(chunk, maker, mac).tobytes())
                if progress is not None:
                    progress(len(chunk.time_ns))
    except BaseException as error:
        if made:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            message = f"cannot be written: {error.strerror or error}"
            raise BadInput(Problem(message, str(path))) from error
        raise
    return maker


def _write_head(file: BinaryIO) -> None:
    file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_BYTES, ETHERNET))


def _mac(text: str) -> Bytes:
    parts = text.split(":")
    try:
        values = [int(part, 16) for part in parts]
    except ValueError:
        values = []
    if len(values) != 6 or not all(0 <= value <= 255 for value in values):
        raise BadInput(Problem(f"'{text}' is not a MAC address", "trace", "dst_mac"))
    return np.array(values, np.uint8)


def records(chunk: MadeChunk, maker: TraceMaker, mac: Bytes) -> Bytes:
    """One row per packet: the record header and the start of the frame."""
    n = len(chunk.time_ns)
    rows = np.zeros((n, _RECORD_BYTES), np.uint8)
    seconds, rest = np.divmod(chunk.time_ns, 1_000_000_000)
    frame_bytes = chunk.size_bytes - FCS_BYTES
    head = np.stack(
        [seconds + _START_S, rest, np.full(n, SNAP_BYTES), frame_bytes], axis=1
    ).astype("<u4")  # fmt: skip
    rows[:, :16] = head.view(np.uint8).reshape(n, 16)
    frames = rows[:, 16:]
    frames[:, 0:6] = mac
    frames[:, 6:12] = (2, 0, 0, 0, 0, 1)
    frames[:, 12:14] = (8, 0)
    mixed = _mixed(chunk.session.astype(np.uint64) + np.uint64(maker.model.seed << 20))
    is_tcp = (mixed >> np.uint64(40)).astype(np.float64) / (1 << 24) < maker.model.tcp_share
    ip_bytes = (frame_bytes - 14).astype(np.uint32)
    _fill_ip(frames[:, 14:34], chunk, mixed, is_tcp, ip_bytes)
    _put32(frames, 30, maker.addresses[chunk.dst])
    _fill_checksum(frames[:, 14:34])
    _fill_ports(frames[:, 34:], mixed, is_tcp, ip_bytes - 20)
    return rows


def _fill_ip(
    ip: Bytes,
    chunk: MadeChunk,
    mixed: NDArray[np.uint64],
    is_tcp: NDArray[np.bool_],
    ip_bytes: NDArray[np.uint32],
) -> None:
    """Fills in the header, except destination and checksum."""
    ip[:, 0] = 0x45
    _put16(ip, 2, ip_bytes)
    _put16(ip, 4, (chunk.time_ns & 0xFFFF).astype(np.uint32))
    ip[:, 6] = 0x40  # don't fragment
    ip[:, 8] = 64
    ip[:, 9] = np.where(is_tcp, _TCP, _UDP)
    src = np.uint64(11 << 24) + mixed % np.uint64(211 << 24)
    _put32(ip, 12, src.astype(np.uint32))


def _fill_checksum(ip: Bytes) -> None:
    words = ip.astype(np.uint32)
    total = (words[:, 0::2] << 8 | words[:, 1::2]).sum(axis=1)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    _put16(ip, 10, (~total & 0xFFFF).astype(np.uint32))


def _fill_ports(
    l4: Bytes, mixed: NDArray[np.uint64], is_tcp: NDArray[np.bool_], n_bytes: NDArray[np.uint32]
) -> None:
    """TCP with its header length and ACK, UDP with its length; checksums would need the payload."""
    again = _mixed(mixed)
    _put16(l4, 0, (1024 + (again >> np.uint64(16)) % np.uint64(64512)).astype(np.uint32))
    _put16(l4, 2, _PORTS[(again & np.uint64(7)).astype(np.int64)].astype(np.uint32))
    l4[:, 12] = np.where(is_tcp, 0x50, 0)
    l4[:, 13] = np.where(is_tcp, 0x10, 0)
    udp = ~is_tcp
    l4[udp, 4] = n_bytes[udp] >> 8
    l4[udp, 5] = n_bytes[udp] & 0xFF


def _put16(rows: Bytes, at: int, values: NDArray[Any]) -> None:
    rows[:, at] = values >> 8 & 0xFF
    rows[:, at + 1] = values & 0xFF


def _put32(rows: Bytes, at: int, values: NDArray[Any]) -> None:
    _put16(rows, at, values >> 16)
    _put16(rows, at + 2, values & 0xFFFF)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatters neighbouring numbers (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)), np.uint64)
