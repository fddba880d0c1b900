# SPDX-License-Identifier: BSD-3-Clause
"""raw_frames.py - frames as bytes, sent on one link and received on another, bypassing the
kernels."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Sequence

from lab import Namespace

IPV4, ARP, IPV6 = 0x0800, 0x0806, 0x86DD
UDP, ICMP, ICMP6 = 17, 1, 58

_SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for frame in sys.argv[1:]:
    s.send(bytes.fromhex(frame))
"""

# argv: a marker. Prints frames until one contains the marker.
_WATCH = """
import socket, sys
ETH_P_ALL, OUTGOING = 3, 4
marker = bytes.fromhex(sys.argv[1])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
s.bind(("eth0", ETH_P_ALL))
s.settimeout(30)
print("watching", flush=True)
frame = b""
while marker not in frame:
    frame, source = s.recvfrom(4096)
    if source[2] != OUTGOING:
        print(frame.hex(), flush=True)
"""


def ether(dst: str, src: str, ether_type: int, body: bytes) -> bytes:
    """A frame."""
    macs = bytes.fromhex((dst + src).replace(":", ""))
    return (macs + struct.pack("!H", ether_type) + body).ljust(60, b"\0")


def checksum(data: bytes) -> int:
    """The Internet checksum."""
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(src: str, dst: str, protocol: int, body: bytes, options: bytes = b"") -> bytes:
    """A packet with a correct header checksum."""
    ihl = 5 + len(options) // 4
    head = bytearray(
        struct.pack("!BBHIBBH", 0x40 | ihl, 0, ihl * 4 + len(body), 0, 64, protocol, 0)
    )
    head += socket.inet_aton(src) + socket.inet_aton(dst) + options
    struct.pack_into("!H", head, 10, checksum(bytes(head)))
    return bytes(head) + body


def ipv6(src: str, dst: str, following: int, body: bytes) -> bytes:
    """A packet."""
    head = struct.pack("!IHBB", 0x60000000, len(body), following, 64)
    return head + _address6(src) + _address6(dst) + body


def udp(body: bytes, src_port: int = 5000, dst_port: int = 5001) -> bytes:
    """A datagram without a checksum, as IPv4 allows."""
    return struct.pack("!HHHH", src_port, dst_port, 8 + len(body), 0) + body


def udp6(src: str, dst: str, body: bytes, dst_port: int = 5001) -> bytes:
    """A UDP datagram over IPv6 with its checksum."""
    segment = bytearray(struct.pack("!HHHH", 5000, dst_port, 8 + len(body), 0) + body)
    pseudo = _address6(src) + _address6(dst) + struct.pack("!II", len(segment), UDP)
    struct.pack_into("!H", segment, 6, checksum(pseudo + bytes(segment)))
    return ipv6(src, dst, UDP, bytes(segment))


def ping(body: bytes) -> bytes:
    """An ICMP echo request."""
    message = bytearray(struct.pack("!BBHHH", 8, 0, 0, 7, 1) + body)
    struct.pack_into("!H", message, 2, checksum(bytes(message)))
    return bytes(message)


def arp_request(src_mac: str, src: str, wanted: str) -> bytes:
    """Who has the address?"""
    head = struct.pack("!HHBBH", 1, IPV4, 6, 4, 1) + bytes.fromhex(src_mac.replace(":", ""))
    return head + socket.inet_aton(src) + bytes(6) + socket.inet_aton(wanted)


def send(sender: Namespace, frames: Sequence[bytes]) -> None:
    """Puts frames on the host's link."""
    sender.python(_SEND, *(frame.hex() for frame in frames))


def arriving(
    sender: Namespace, receiver: Namespace, frames: Sequence[bytes], last: bytes, marker: bytes
) -> list[bytes]:
    """The frames that arrive up to `last`, which contains the marker and is sent after the rest."""
    watching = receiver.start(
        "python3", "-S", "-u", "-c", _WATCH, marker.hex(), stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    assert watching.stdout.readline() == "watching\n"
    send(sender, [*frames, last])
    told, _ = watching.communicate(timeout=40)
    assert watching.returncode == 0, f"what was to come last did not: {told}"
    return [bytes.fromhex(line) for line in told.split()]


def _address6(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, text)
