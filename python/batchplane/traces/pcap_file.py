# SPDX-License-Identifier: BSD-3-Clause
"""pcap_file.py - reads pcap and pcapng as a stream of packets, and writes small ones."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..base.problems import BadInput, Problem

ETHERNET = 1
_MAGIC_US, _MAGIC_NS = 0xA1B2C3D4, 0xA1B23C4D
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER = 0x1A2B3C4D
# No link has longer frames, and no tool writes longer blocks: the file must be damaged.
_MAX_FRAME_BYTES = 1 << 18
_MAX_BLOCK_BYTES = 1 << 24
_READ_BYTES = 1 << 20


class RawPacket(NamedTuple):
    """One packet of a file; `frame` may be shorter than it was on the wire."""

    number: int  # from 1
    time_ns: int  # since 1970
    frame: bytes
    len_bytes: int  # of the whole frame, without its checksum


class _File:
    """A file whose reads report truncation."""

    def __init__(self, file: BinaryIO, path: Path):
        self.file = file
        self.path = path

    def bad(self, message: str, fix: str = "") -> BadInput:
        return BadInput(Problem(message, str(self.path), fix=fix))

    def take(self, n_bytes: int, what: str) -> bytes:
        data = self.file.read(n_bytes)
        if len(data) != n_bytes:
            raise self.bad(f"the file ends in the middle of {what}", "copy or capture it again")
        return data


def read_packets(path: Path) -> Iterator[RawPacket]:
    """The packets of an Ethernet pcap or pcapng file, in file order."""
    try:
        handle = path.open("rb", buffering=_READ_BYTES)
    except OSError as error:
        raise BadInput(Problem(f"cannot be read: {error.strerror}", str(path))) from error
    with handle:
        file = _File(handle, path)
        start = handle.read(4)
        if not start:
            raise file.bad("the file is empty")
        if start[:2] == b"\x1f\x8b":
            raise file.bad("the file is compressed", f"gunzip {path}")
        if start == struct.pack(">I", _SECTION):
            yield from _read_pcapng(file)
            return
        for order in "<>":
            if len(start) == 4 and struct.unpack(order + "I", start)[0] in (_MAGIC_US, _MAGIC_NS):
                is_ns = struct.unpack(order + "I", start)[0] == _MAGIC_NS
                yield from _read_pcap(file, order, 1 if is_ns else 1000)
                return
        raise file.bad("this is neither pcap nor pcapng", "capture with tcpdump -w or dumpcap")


# --- pcap ----------------------------------------------------------------------------------------


def _read_pcap(file: _File, order: str, tick_ns: int) -> Iterator[RawPacket]:
    *_, link = struct.unpack(order + "HHiIII", file.take(20, "its header"))
    _require_ethernet(file, link & 0xFFFF)
    record = struct.Struct(order + "IIII")
    read = file.file.read
    number = 0
    while head := read(16):
        number += 1
        if len(head) != 16:
            raise file.bad(f"the file ends in the middle of packet {number}")
        seconds, ticks, kept_bytes, len_bytes = record.unpack(head)
        _require_possible(file, number, kept_bytes, len_bytes)
        frame = file.take(kept_bytes, f"packet {number}")
        yield RawPacket(number, seconds * 1_000_000_000 + ticks * tick_ns, frame, len_bytes)


def _require_ethernet(file: _File, link: int) -> None:
    if link != ETHERNET:
        raise file.bad(
            f"its link type is {link}, but only Ethernet (1) is supported",
            "capture on an Ethernet interface, not on 'any'",
        )


def _require_possible(file: _File, number: int, kept_bytes: int, len_bytes: int) -> None:
    if kept_bytes > _MAX_FRAME_BYTES or len_bytes > _MAX_FRAME_BYTES:
        raise file.bad(
            f"packet {number} claims {max(kept_bytes, len_bytes)} bytes: the file is damaged"
        )


# --- pcapng --------------------------------------------------------------------------------------


@dataclass
class _Clock:
    """The timestamp units of an interface."""

    ticks_per_s: int = 1_000_000
    offset_s: int = 0

    def ns(self, ticks: int) -> int:
        return ticks * 1_000_000_000 // self.ticks_per_s + self.offset_s * 1_000_000_000


@dataclass
class _Section:
    order: str
    clocks: list[_Clock] = field(default_factory=list)


def _read_pcapng(file: _File) -> Iterator[RawPacket]:
    file.file.seek(0)
    section: _Section | None = None
    number = 0
    while head := file.file.read(8):
        if len(head) != 8:
            raise file.bad(f"the file ends in the middle of a block, behind packet {number}")
        if head[:4] == struct.pack(">I", _SECTION):
            section = _read_section(file, head)
            continue
        assert section is not None  # the first block is a section header: its magic was checked
        kind, block_bytes = struct.unpack(section.order + "II", head)
        body = _body(file, section.order, block_bytes, number)
        if kind == _INTERFACE:
            section.clocks.append(_read_interface(file, section.order, body))
        elif kind == _PACKET:
            number += 1
            yield _read_enhanced(file, section, body, number)
        elif kind in (_SIMPLE_PACKET, _OLD_PACKET):
            raise file.bad(
                f"packet {number + 1} is in a block without a usable time",
                "write it anew: editcap -F pcapng IN OUT",
            )


def _body(file: _File, order: str, block_bytes: int, number: int) -> bytes:
    if block_bytes < 12 or block_bytes % 4 or block_bytes > _MAX_BLOCK_BYTES:
        raise file.bad(f"a block behind packet {number} claims {block_bytes} bytes: damaged")
    body = file.take(block_bytes - 8, f"a block, behind packet {number}")
    if struct.unpack(order + "I", body[-4:])[0] != block_bytes:
        raise file.bad(f"a block behind packet {number} has two lengths: the file is damaged")
    return body[:-4]


def _read_section(file: _File, head: bytes) -> _Section:
    magic = file.take(4, "its header")
    for order in "<>":
        if struct.unpack(order + "I", magic)[0] == _BYTE_ORDER:
            (block_bytes,) = struct.unpack(order + "I", head[4:])
            if 28 <= block_bytes <= _MAX_BLOCK_BYTES and block_bytes % 4 == 0:
                file.take(block_bytes - 12, "its header")
                return _Section(order)
    raise file.bad("the header of a section is damaged")


def _read_interface(file: _File, order: str, body: bytes) -> _Clock:
    if len(body) < 8:
        raise file.bad("the description of an interface is too short")
    _require_ethernet(file, struct.unpack_from(order + "H", body)[0])
    clock, at = _Clock(), 8
    while at + 4 <= len(body):
        code, n_bytes = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + n_bytes]
        if code == 9 and n_bytes == 1 and len(value) == 1:  # resolution: a power of ten or of two
            power = value[0] & 0x7F
            clock.ticks_per_s = 2**power if value[0] & 0x80 else 10**power
        if code == 14 and n_bytes == 8 and len(value) == 8:
            clock.offset_s = struct.unpack(order + "q", value)[0]
        at += 4 + (n_bytes + 3) // 4 * 4
    return clock


def _read_enhanced(file: _File, section: _Section, body: bytes, number: int) -> RawPacket:
    if len(body) < 20:
        raise file.bad(f"the block of packet {number} is too short")
    interface, high, low, kept_bytes, len_bytes = struct.unpack_from(section.order + "IIIII", body)
    _require_possible(file, number, kept_bytes, len_bytes)
    if interface >= len(section.clocks):
        raise file.bad(f"packet {number} refers to interface {interface}, which was not described")
    if len(body) < 20 + kept_bytes:
        raise file.bad(f"packet {number} is longer than its block: the file is damaged")
    time_ns = section.clocks[interface].ns(high << 32 | low)
    if not 0 <= time_ns < 1 << 63:
        raise file.bad(f"packet {number} is not of the years 1970 to 2262: the file is damaged")
    return RawPacket(number, time_ns, body[20 : 20 + kept_bytes], len_bytes)


# --- writing -------------------------------------------------------------------------------------


def write_pcap(
    path: Path,
    packets: Iterable[tuple[int, bytes]],
    is_ns: bool = True,
    order: str = "<",
    snap_bytes: int = 65535,
) -> None:
    """Writes (time_ns, frame) as pcap; frames are cut at snap_bytes."""
    tick_ns = 1 if is_ns else 1000
    magic = _MAGIC_NS if is_ns else _MAGIC_US
    with path.open("wb") as file:
        file.write(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_bytes, ETHERNET))
        for time_ns, frame in packets:
            seconds, rest_ns = divmod(time_ns, 1_000_000_000)
            kept = frame[:snap_bytes]
            file.write(
                struct.pack(order + "IIII", seconds, rest_ns // tick_ns, len(kept), len(frame))
            )
            file.write(kept)


def write_pcapng(
    path: Path, packets: Iterable[tuple[int, bytes]], resolution: int = 9, order: str = "<"
) -> None:
    """Writes (time_ns, frame) as pcapng; `resolution` is the byte of if_tsresol."""
    clock = _Clock(2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution)

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + size + body + size

    with path.open("wb") as file:
        file.write(block(_SECTION, struct.pack(order + "IHHq", _BYTE_ORDER, 1, 0, -1)))
        options = struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
        file.write(block(_INTERFACE, struct.pack(order + "HHI", ETHERNET, 0, 0) + options))
        for time_ns, frame in packets:
            ticks = time_ns * clock.ticks_per_s // 1_000_000_000
            head = struct.pack(
                order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame)
            )
            file.write(block(_PACKET, head + frame))
